"""The parts that minutch's web servers share: the live page, search, and the service for jobs.

Read `access` first: it decides who may ask for anything. Each server passes all of its requests
through `requestchecks`, and none listens beyond this machine without a token.

    `access`           decides which requests are let in: Host, Origin, token
    `requestchecks`    checks each request before the app gets it, and adds headers to answers
    `listening`        opens sockets, reads or makes the token, sets up uvicorn
    `htmlbuilder`      builds HTML from elements; text and attributes are always escaped
"""
