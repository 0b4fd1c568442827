"""Runs the functions of jobs on Spark; the files are those that this machine would have written.

Begin with engine, the driver's side; `minutch/work/engine/interface.py` has the verbs.

    `engine`      Spark as an engine: pieces and partitions become tasks
    `session`     starts and stops Spark for this process, and sends functions
    `executor`    what executors run
"""
