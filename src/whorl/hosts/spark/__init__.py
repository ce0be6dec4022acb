"""The kernel on Spark: one partition a task, state that stays with its worker, epochs that count once.

`docs/architecture/spark-host.md` tells the whole story. The driver's side is `host`, `stream` and `evaluate`, which
share `deployment`; the workers' side is `worker` and `residents`. Between them pass a `protocol.Request`, a
`protocol.Reply`, and files in the folder that `layout` describes.
"""
