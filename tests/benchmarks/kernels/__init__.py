"""Measures what each kernel gains over NumPy, Polars or a library for the same task.

    python -m tests.benchmarks.kernels [--count 100000] [--pages 200] [--only WORD] [--jobs]

    made       the columns, files and pages that rows work on
    rows       what a row is, and how two results are compared
    vectors    tasks of kernels, done by NumPy and Polars
    columns    rows of kernels over columns of strings and numbers
    files      rows of kernels over bytes of files
    records    rows of kernels that take records apart or write them
    pages      rows of kernels over pages and their links
    texts      rows of kernels over texts
    jobs       whole jobs, with the alternative instead of a kernel

A row is a task: the function that calls some kernels, and the best other way that gives the same
result; where neither NumPy nor Polars can say it, that is a library, or Python. `test_kernels` runs
every row on little data and finds the kernels that no row covers. A kernel that makes no job 1.5
times as fast has no reason to be there.
"""
