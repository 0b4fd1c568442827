"""All compiled code, and nothing else: kernels walk bytes and columns without Python's lock.

Kernels hold no policy. Begin with native, which says what a kernel is; then find, the one that all
databases go through. An installation compiles them into one library.

    `native`, `primitives`                   what a kernel is written in
    `build`, `intrinsics`, `link`, `wheel`   how the library is made
    `library`, `interpreted`, `clibrary`     how it is loaded, and run without compiling
    `arrow`, `memory`                        columns and numbers in memory
    `find`, `layout`, `sums`                 records of SequenceFiles, and checksums
    `inflate`, `deflate`, `libdeflate`       compressed values
    `crawldatum`, `maps`, `parsedata`, `parsemeta`, `webgraph`    records taken apart and written
    `links`, `inlinks`, `outlinks`           links out of pages and into them
    `sort`, `ranges`, `match`, `distinct`    order, cut and compare columns
    `hash`, `seeded`, `simhash`              hashes
    `hosts`, `resolve`, `sieve`, `segments`, `seeds`    URLs in bulk
    `html`, `occurrences`, `markup`, `tags`  pages
"""
