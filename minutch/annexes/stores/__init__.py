"""Opens files on Hadoop's file systems (hdfs://, s3a://) for jobs that need not know of them.

Jobs name them by `minutch.paths`, whose interface this is.

    `path`      HadoopPath: the methods of pathlib that databases and segments need, and folders
                moved where a rename copies file by file
    `hadoop`    the file systems, called in a Java process beside this one
"""
