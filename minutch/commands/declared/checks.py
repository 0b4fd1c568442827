"""Declares the checkers and explanations, and what is about the installation."""

from __future__ import annotations

from dataclasses import replace

from minutch.commands.declaration import Argument, Command, Option, path, switch
from minutch.commands.declared.cycle import CYCLE
from minutch.commands.declared.databases import LINES
from minutch.commands.declared.segments import CHUNK_SIZES

# fmt: off
_GENERATES = tuple(
    replace(
        option,
        group="What generate is given, as far as it decides which pages are taken:",
        least=1 if option.name == "-maxNumSegments" else None,
    )
    for command in CYCLE
    for option in command.options
    if command.name == "generate" and option.name not in ("-force", "-numFetchers")
)
_PAGE = (
    switch("-normalize", "normalize the URLs"),
    switch("-followRedirects", "follow redirects"),
    switch("-checkRobotsTxt", "fail if robots.txt forbids the page", field="check_robots"),
)
_MORE = (
    Option("-md", "key>=<value", help="metadata of the CrawlDatum; may be repeated", repeats=True,
           field="metadata",
           collect=lambda pairs: dict(pair.partition("=")[::2] for pair in pairs)),
    *LINES,
)
_PAGE_SYNOPSIS = ("[OPTIONS] (<url> | -stdin | -listen <port> [-keepClientCnxOpen])",)
_URL = (
    Argument("url", "the page", is_optional=True),
)
_POINTS = ("url-filter", "index-filter", "parser", "scoring", "protocol", "schedule")
"""The folders of conf/plugin-templates."""

CHECKS = (
    Command(
        "explain",
        reads="crawldb, linkdb, segments", writes="stdout",
        help="explain why a URL was not fetched, or what is left to do in a crawl",
        example="minutch explain https://www.example.org/ crawl/",
        synopsis=("<url> [<crawl>] [options]", "[<crawl>] [options]"),
        arguments=(
            Argument("url",
                     "the URL that is asked about; without one, what is left to do in the crawl",
                     is_optional=True),
            Argument("crawl", "the crawl, before or after the URL; without it ./crawl",
                     is_optional=True),
        ),
        options=(
            switch("--json", "the same facts as JSON, with types"),
            switch("--quick",
                   "leave out what has no index: which segments lead to the URL, which pages have"
                   " the same content"),
            switch("--resolve", "look the host's name up, to ask the address guard"),
            *_GENERATES,
        ),
        job="minutch.inspect.explain.explainer:explain", settings="GenerateOptions",
        code="minutch.commands.explain:run",
    ),
    Command(
        "whatif",
        reads="crawl folder", writes="stdout",
        help="say what other settings would make of a crawl, without a request",
        example="minutch whatif crawl/ -D db.ignore.external.links=true",
        synopsis=("<crawl> [<conf>] [-D name=value]... [options]",),
        arguments=(
            Argument("crawl", "the folder of the crawl", path),
            Argument("conf",
                     "a file of settings, or a folder with nutch-site.xml and rule files, in place"
                     " of the crawl's", path, is_optional=True),
        ),
        options=(
            switch("--json", "the same facts as JSON, with types"),
            switch("--filter",
                   "generate applies the URL filters, as it does where it is run by itself"),
            *(one for one in _GENERATES if one.name != "-noFilter"),
        ),
        job="minutch.inspect.whatif.forecast:whatif", settings="GenerateOptions",
        code="minutch.commands.explain:whatif",
    ),
    Command(
        "text",
        reads="a page, or any Hadoop file", writes="stdout",
        help="print what a page says, or any file of Hadoop's",
        example="minutch text https://www.example.org/ --markdown",
        synopsis=(
            "(<url> | <file>)... [options]",
            "<crawl> <url>... [options]",
            "<path>... [-json]",
        ),
        arguments=(
            Argument("path",
                     "URLs or files of pages; or a crawl's folder, and URLs of pages in it; or"
                     " files of Hadoop's, or folders with such", many=True),
        ),
        options=(
            switch("--markdown", "pages as Markdown"),
            switch("--chunks", "pages as Markdown in pieces for retrieval, an object of JSON each"),
            *CHUNK_SIZES,
            switch("--show-frame", "all lines of pages, and why some are left out"),
            switch("-json", "files of Hadoop's as one JSON object per record"),
        ),
        note="A live page is fetched as a crawl does it: robots.txt is obeyed.",
        code="minutch.commands.text:run", error_exit=1, live=True,
    ),
    Command(
        "parsechecker", java="parse.ParserChecker",
        reads="a URL", writes="stdout",
        help="fetch and parse one page, and show the result",
        example="minutch parsechecker -dumpText https://www.example.org/",
        synopsis=_PAGE_SYNOPSIS,
        arguments=_URL,
        options=(
            *_PAGE,
            switch("-dumpText", "show the text as well"),
            Option("-forceAs", "mimeType", help="parse as this type, whatever the page's type is"),
            *_MORE,
        ),
        code="minutch.commands.checkers:parsechecker",
    ),
    Command(
        "indexchecker", java="indexer.IndexingFiltersChecker",
        reads="a URL", writes="stdout",
        help="fetch and parse one page, and show the document to index",
        example="minutch indexchecker https://www.example.org/",
        synopsis=_PAGE_SYNOPSIS,
        arguments=_URL,
        options=(
            *_PAGE,
            switch("-dumpText", "show whole values, not only their first 100 characters"),
            switch("-doIndex", "send the document to the index writers as well"),
            *_MORE,
        ),
        code="minutch.commands.checkers:indexchecker",
    ),
    Command(
        "filterchecker", java="net.URLFilterChecker",
        reads="URLs on stdin", writes="stdout",
        help="show which URLs pass the filters",
        example="echo https://www.example.org/ | minutch filterchecker -stdin",
        options=(
            Option("-filterName", "filterName",
                   help="only this filter, by the id of its plugin (a pattern) or by its class"),
            *LINES,
        ),
        code="minutch.commands.installation:filterchecker",
    ),
    Command(
        "normalizerchecker", java="net.URLNormalizerChecker",
        reads="URLs on stdin", writes="stdout",
        help="show how the normalizers change URLs",
        example="echo HTTP://www.Example.org:80/a/.. | minutch normalizerchecker -stdin",
        options=(
            Option("-normalizer", "normalizerName",
                   help="only this normalizer, by the id of its plugin (a pattern) or by its"
                        " class"),
            Option("-scope", "scope",
                   help="default, partition, generate_host_count, fetcher, crawldb, linkdb,"
                        " inject, outlink or indexer"),
            *LINES,
        ),
        note="An empty line is printed for a URL that is malformed or dropped.",
        code="minutch.commands.installation:normalizerchecker",
    ),
    Command(
        "robotsparser", java="protocol.RobotRulesParser",
        reads="robots.txt, URL list", writes="stdout",
        help="show which URLs a robots.txt allows",
        example="minutch robotsparser https://www.example.org/robots.txt urls.txt bot",
        arguments=(
            Argument("robots-file-or-url",
                     "a local file, or a URL (http, https, ftp or file) whose host's robots.txt"
                     " is fetched"),
            Argument("url-file",
                     "a local file with one URL on each line, of which path and query count", path),
            Argument("agent-names",
                     "names of the crawler, separated by commas; without them http.agent.name and"
                     " http.robots.agents, and without those the rules for everybody (`*`)",
                     is_optional=True),
        ),
        note="-D fetcher.store.robotstxt=true shows the fetched robots.txt;\n"
             "-D http.robot.rules.allowlist=<hosts> names hosts whose robots.txt is not asked"
             " for.",
        code="minutch.commands.checkers:robotsparser",
    ),
    Command(
        "showproperties", java="tools.ShowProperties",
        reads="configuration", writes="stdout",
        help="list all properties, their values, and which of them this version uses",
        example="minutch showproperties | grep fetcher",
        arguments=(
            Argument("crawl", "the folder of a crawl, with settings of its own", is_optional=True),
        ),
        code="minutch.commands.installation:showproperties", takes_words=True,
    ),
    Command(
        "plugin", java="plugin.PluginRepository",
        reads="plugins", writes="stdout",
        help="list the plugins, or run the main function of one of a plugin's modules",
        example="minutch plugin",
        arguments=(
            Argument("pluginId", "the id of a plugin; without one, all plugins are listed"),
            Argument("className", "a module whose main(args) is called, or module:Class"),
            Argument("arg", many=True, is_optional=True),
        ),
        note="With Nutch's class of a URL filter, lines of standard input are filtered: +url or"
             " -url for each.",
        code="minutch.commands.installation:plugin", takes_words=True,
    ),
)

SHELL = (
    Command(
        "mcp",
        reads="crawl folder",
        help="offer a crawl to an assistant: search, pages, SQL, explanations, links",
        example="minutch mcp crawl/",
        arguments=(Argument("crawl", "the folder of the crawl", path),),
        code="minutch.annexes.assistant.server:run",
        note="It speaks the Model Context Protocol on standard input and output, only reads, and"
             " connects nowhere.\nIt needs the extra `mcp`.",
    ),
    Command(
        "init-plugin", writes="a package with its test",
        help="write a plugin to begin with: a package that works, with its test",
        example="minutch init-plugin urlfilter-length --point url-filter",
        arguments=(
            Argument("name",
                     "its id: small letters, digits, dashes; the package has underscores for"
                     " dashes, its folder is made in the working folder"),
        ),
        options=(Option("--point", '|'.join(_POINTS), help="what it extends", choices=_POINTS),),
        code="minutch.commands.init:init_plugin",
        usage_exit=1,
    ),
    Command(
        "completion", writes="stdout",
        help="print a script that completes commands and options in bash, zsh or fish",
        example='eval "$(minutch completion bash)"',
        arguments=(Argument("shell", "bash, zsh or fish"),),
        note='bash: put  eval "$(minutch completion bash)"  into ~/.bashrc\n'
             'zsh:  put  eval "$(minutch completion zsh)"  into ~/.zshrc, after compinit\n'
             "fish: minutch completion fish > ~/.config/fish/completions/minutch.fish",
        code="minutch.commands.completion:run",
        usage_exit=1,
    ),
    Command(
        "startserver", java="service.NutchServer",
        reads="crawl folders", writes="crawl folders",
        help="start Nutch's REST service, which runs jobs for HTTP clients",
        example="minutch startserver -port 8081",
        options=(
            Option("-host", "host", help="the host to listen on (localhost)"),
            Option("-port", "port", int, "the port to listen on (8081); 0: a free one", least=0,
                   most=65535),
            Option("-root", "folder", path,
                   "the folder of crawls (the working folder); clients can't access files outside"),
        ),
        code="minutch.annexes.service.app:run",
        usage_exit=1,
    ),
)
