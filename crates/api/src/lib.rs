//! Wire types of the native HTTP API, shared by the server and its client.
