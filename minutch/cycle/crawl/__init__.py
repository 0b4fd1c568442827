"""crawl: rounds of the whole cycle, resumed where they were stopped.

crawler is the loop; read it first, then rounds, which decides what is left of a round.

    `crawler`, `steps`       the job, and its rounds; their options, and the jobs that they call
    `policy`                 how rounds follow each other: one by one, or in one fetch
    `outside`                what others do beside a crawl that runs
    `preflight`              what comes before the first job: checks, wishes, what is remembered
    `rounds`                 what is left to do of a round
    `screen`                 what a person sees of it
"""
