"""Tables of whole databases, and the engines that run jobs on them.

`tables` says how: part files as columns, sorted and joined a range of keys at a time, within a
bound of memory. `engine` says by whom: the threads of this process, or Spark. A job names neither;
it hands an engine its functions, and both give the same bytes. Read `tables` first.

    `tables`    sorted, hash-partitioned tables over part files
    `engine`    what runs the functions of a job
"""
