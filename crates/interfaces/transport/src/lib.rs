//! What every HTTP interface shares: authentication, limits, streams, errors.
