"""What minutch's pages and web servers share: search, report, live page, the service for jobs.

Read `access` first: it decides who may ask for anything. Each server passes all of its requests
through `requestchecks`, and none listens beyond this machine without a token.

    `access`           decides which requests are let in: Host, Origin, token
    `requestchecks`    checks each request before the app gets it, and adds headers to answers
    `listening`        opens sockets, reads or makes the token, sets up uvicorn
    `connections`      keeps places for those who ask, and ends connections that wait
    `htmlbuilder`      builds HTML from elements; text and attributes are always escaped
    `frame`            frames every page: head, style (`style.css`), policy, sections, figures
    `cells`            formats values, and makes tables of them (sorted by `sort.js`)
    `plots`            draws plots as SVG
"""
