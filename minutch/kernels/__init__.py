"""All compiled code, and nothing else: kernels walk bytes and columns without Python's lock.

Kernels hold no policy. Begin with native, which says what a kernel is; then sequencefile, which
all databases go through. An installation compiles them into one library.

    `native`, `memory`                     what a kernel is written in
    `build`, `intrinsics`, `link`, `wheel`    how the library is made
    `library`                              how it is loaded, or kernels run without compiling
    `arrow`, `clibrary`                    columns in memory; functions of C libraries
    `sequencefile`, `deflate`              records of SequenceFiles, checksums, compressed values
    `crawldatum`, `maps`, `parsedata`, `webgraph`    records taken apart and written
    `links`, `inlinks`, `outlinks`         links out of pages and into them
    `sort`, `keycolumns`                   order, cut and compare columns
    `hash`, `simhash`, `minhash`           hashes
    `quality`, `languages`                 texts: words and lines counted, languages, media types
    `urls`, `patterns`, `sieve`            URLs in bulk
    `html`, `blocks`, `features`, `occurrences`, `markup`, `tags`, `scan`, `textlinks`    pages
"""
