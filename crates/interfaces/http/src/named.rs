//! What stands in the address of a request: the id in its path, the words behind its `?`.

use std::str::FromStr;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use aide::operation::{ParamLocation, add_parameters, parameters_from_schema};
use antiphon_core::ErrorCode;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::{fails, in_path};

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

impl<T: JsonSchema> OperationInput for Named<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        in_path(operation, context.schema.subschema_for::<T>());
        fails(operation, &[404]);
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

impl<T: JsonSchema> OperationInput for Asked<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let schema = T::json_schema(&mut context.schema);
        let words = parameters_from_schema(context, schema, ParamLocation::Query);
        add_parameters(context, operation, words);
        fails(operation, &[400]);
    }
}
