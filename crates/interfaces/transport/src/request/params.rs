//! Parameters in the URL of a request: the id in its path, and its query.

use std::str::FromStr;

use antiphon_core::ErrorCode;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::{
    GenContext, Operation, OperationInput, ParamLocation, add_parameters, fails,
    parameters_from_schema, path_parameter,
};

/// Extracts the id in the path. Fails with 404 when the text is not an id.
pub struct PathId<T>(pub T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for PathId<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let not_found = || ApiError::new(ErrorCode::NotFound, "there is nothing of this name");
        let Path(text) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| not_found())?;
        text.parse().map(Self).map_err(|_| not_found())
    }
}

impl<T: JsonSchema> OperationInput for PathId<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        path_parameter(operation, context.schema.subschema_for::<T>());
        fails(operation, &[404]);
    }
}

/// Extracts the query. Fails with 400.
pub struct QueryParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(params)| Self(params))
            .map_err(|error| ApiError::invalid(format!("`query`: {}", error.body_text())))
    }
}

impl<T: JsonSchema> OperationInput for QueryParams<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let schema = T::json_schema(&mut context.schema);
        let parameters = parameters_from_schema(context, schema, ParamLocation::Query);
        add_parameters(context, operation, parameters);
        fails(operation, &[400]);
    }
}
