"""What minutch's pages and web servers share: search, report, live page, the service for jobs.

Read `access` first: it decides who may ask for anything. Each server passes all of its requests
through it, and none listens beyond this machine without a token.

    `access`     decides which requests are let in: Host, Origin, token; opens sockets, checks
    `serving`    keeps places for those who ask, and sets up uvicorn
    `frame`      makes HTML of elements, and frames pages: head, style (`style.css`), policy
    `cells`      formats values, and makes tables of them (sorted by `sort.js`)
    `plots`      draws plots as SVG
"""
