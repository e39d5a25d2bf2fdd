//! The generator of the `OpenAPI` document: the only file that names the crate `aide`.
//!
//! `aide` is pinned to an alpha version. Its releases describe types with schemars 0.8 or 0.9, and our types
//! implement the traits of schemars 1. Every other file uses these re-exports, so that a change of the
//! generator stays in this file.

pub use aide::axum::ApiRouter;
pub use aide::axum::routing::{get_with, post_with};
pub use aide::generate::{GenContext, in_context};
pub use aide::openapi::{
    HeaderStyle, Info, MediaType, OpenApi, Operation, Parameter, ParameterData,
    ParameterSchemaOrContent, PathStyle, ReferenceOr, Response as ResponseDescription,
    SchemaObject, StatusCode as DescribedStatus,
};
pub use aide::operation::{ParamLocation, add_parameters, parameters_from_schema};
pub use aide::transform::TransformOperation;
pub use aide::{OperationInput, OperationOutput};
