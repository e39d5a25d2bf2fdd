import hashlib
import sqlite3

from login import login


def test_the_right_password_lets_in():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE users (name TEXT, hash TEXT, tries INTEGER)")
    known = hashlib.md5(b"open sesame").hexdigest()
    db.execute("INSERT INTO users VALUES ('ali', ?, 0)", (known,))
    assert login(db, "ali", "open sesame")
