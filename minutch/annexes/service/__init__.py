"""The REST service of Nutch until 1.22: other programs start, watch and stop jobs over HTTP.

Begin with app, which maps paths to functions.

    `app`, `openapi`                      paths, responses, and their description
    `requestchecks`                       checks of requests, and of the files they name
    `commandlines`, `jobtable`            requests as command lines; jobs that wait, run or ended
    `configs`, `queries`                  configurations; reads of databases, segments and files
"""
