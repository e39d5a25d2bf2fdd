//! What stands in the address of a request: the id in its path, the words behind its `?`.

use std::str::FromStr;

use antiphon_core::ErrorCode;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;

/// The id in the path. What is no id, names nothing.
pub(crate) struct Named<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let nothing = || ApiError::new(ErrorCode::NotFound, "there is nothing of this name");
        let Path(text) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| nothing())?;
        text.parse().map(Self).map_err(|_| nothing())
    }
}

/// The words behind the `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|error| ApiError::invalid(error.body_text()))
    }
}
