# Opens, asks and closes a file in a loop until its standard input ends: python3 read-loop.py <file> <sql>. Says how often at the end.
import sys, threading, duckdb

path, sql = sys.argv[1:]
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
seen = []
while not ended.is_set() or not seen:
    with duckdb.connect(path, read_only=True) as connection:
        row = connection.execute(sql).fetchall()[0]
    seen.append([int(value) for value in row])
print(seen)
