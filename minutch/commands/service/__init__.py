"""startserver: the REST service of Nutch until 1.22, by which another program starts, watches and
stops jobs.

startserver     the command: address, token, folder
app             paths → what is done, and how it is answered
requestchecks   how much of a request may come in; who may ask is decided in `minutch/web/access.py`
confinedpaths   paths of clients, kept within one folder
configs         the configurations that clients have made, by name
commandlines    a job as Nutch's clients word it → the command line of `flow`
jobtable        jobs that wait, run and have ended, each a process of its own
queries         what is read from databases and files for a client
openapi         the service described, as JSON and as a page
"""
