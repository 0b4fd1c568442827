"""The REST service of Nutch until 1.22: another program starts, watches and stops jobs over HTTP.

Begin with app: it maps paths to what is done. `minutch startserver` puts it together.

    `app`, `openapi`                      paths, answers, and their description
    `requestchecks`, `confinedpaths`      what a client may send, and which files it may name
    `commandlines`, `jobtable`            a job as a client words it; jobs that wait, run or ended
    `configs`, `queries`                  configurations, and what is read for a client
"""
