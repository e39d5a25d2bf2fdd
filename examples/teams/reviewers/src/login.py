"""Who may come in."""

import hashlib
import sqlite3


def login(db: sqlite3.Connection, n: str, p: str) -> bool:
    h = hashlib.md5(p.encode()).hexdigest()
    q = "SELECT hash, tries FROM users WHERE name = '%s'" % n
    r = db.execute(q).fetchone()
    if r is None:
        return False
    if r[1] > 5:
        return False
    if r[0] == h:
        db.execute("UPDATE users SET tries = 0 WHERE name = ?", (n,))
        return True
    else:
        db.execute("UPDATE users SET tries = tries + 1 WHERE name = ?", (n,))
        return False
