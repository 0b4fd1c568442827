"""crawl: rounds of the whole cycle, resumed where they were stopped.

crawler is the loop; read it first, then rounds, which decides what is left of a round.

    `crawls`                 the job: chooses how rounds follow each other
    `crawler`, `steps`       the rounds, and the jobs that they call
    `policy`, `overlap`      how rounds follow each other: one by one, or in one fetch
    `outside`                what others do beside a crawl that runs
    `options`, `wishes`      what a crawl is asked for; of a site, in other tools' words
    `remembered`             what its folder keeps of that, for all later commands
    `seedhosts`              the scheme of seeds that lack it, and seeds that failed
    `preflight`, `rounds`    checks before the first job; what is left to do of a round
    `screen`, `summaries`    what a person sees of it
"""
