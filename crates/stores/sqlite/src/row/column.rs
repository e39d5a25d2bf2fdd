//! Domain values as columns, and back.

use std::error::Error;
use std::str::FromStr;

use antiphon_core::Usage;
use chrono::{DateTime, Utc};
use rusqlite::Row;
use rusqlite::types::Type;
use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned};
use serde_json::Value;

/// The JSON word of a value.
pub(crate) fn word(value: &impl Serialize) -> rusqlite::Result<String> {
    let fault =
        |error: Box<dyn Error + Send + Sync>| Err(rusqlite::Error::ToSqlConversionFailure(error));
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        Ok(other) => fault(format!("{other} is no word").into()),
        Err(error) => fault(error.into()),
    }
}

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// A value of a nullable column of JSON.
pub(crate) fn read_json_maybe<T: DeserializeOwned>(
    row: &Row<'_>,
    index: usize,
) -> rusqlite::Result<Option<T>> {
    let Some(text) =
        row.get_ref(index)?.as_str_or_null().map_err(|error| unreadable(index, error))?
    else {
        return Ok(None);
    };
    serde_json::from_str(text).map(Some).map_err(|error| unreadable(index, error))
}

/// The value with this JSON word.
pub(crate) fn read_word<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(index)?.as_str().map_err(|error| unreadable(index, error))?;
    T::deserialize(StrDeserializer::<de::value::Error>::new(text))
        .map_err(|error| unreadable(index, error))
}

/// The same for a nullable column.
pub(crate) fn read_word_maybe<T: DeserializeOwned>(
    row: &Row<'_>,
    index: usize,
) -> rusqlite::Result<Option<T>> {
    match row.get_ref(index)?.data_type() {
        Type::Null => Ok(None),
        Type::Integer | Type::Real | Type::Text | Type::Blob => read_word(row, index).map(Some),
    }
}

/// A value parsed from text.
pub(crate) fn read_text<T: FromStr<Err: Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    index: usize,
) -> rusqlite::Result<T> {
    let text = row.get_ref(index)?.as_str().map_err(|error| unreadable(index, error))?;
    text.parse().map_err(|error| unreadable(index, error))
}

/// The same for a nullable column.
pub(crate) fn read_text_maybe<T: FromStr<Err: Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    index: usize,
) -> rusqlite::Result<Option<T>> {
    match row.get_ref(index)?.data_type() {
        Type::Null => Ok(None),
        Type::Integer | Type::Real | Type::Text | Type::Blob => read_text(row, index).map(Some),
    }
}

/// A time from two columns: seconds, and nanoseconds.
pub(crate) fn read_time(row: &Row<'_>, index: usize) -> rusqlite::Result<DateTime<Utc>> {
    DateTime::from_timestamp(row.get(index)?, row.get(index + 1)?)
        .ok_or_else(|| unreadable(index, NoTime))
}

/// Tokens as four columns.
pub(crate) fn usage(usage: &Usage) -> (i64, i64, Option<i64>, Option<i64>) {
    (
        usage.input_tokens.cast_signed(),
        usage.output_tokens.cast_signed(),
        usage.cache_read_tokens.map(u64::cast_signed),
        usage.cache_write_tokens.map(u64::cast_signed),
    )
}

/// Tokens from four columns.
pub(crate) fn read_usage(row: &Row<'_>, index: usize) -> rusqlite::Result<Usage> {
    let maybe =
        |index| row.get::<_, Option<i64>>(index).map(|tokens| tokens.map(i64::cast_unsigned));
    Ok(Usage {
        input_tokens: row.get::<_, i64>(index)?.cast_unsigned(),
        output_tokens: row.get::<_, i64>(index + 1)?.cast_unsigned(),
        cache_read_tokens: maybe(index + 2)?,
        cache_write_tokens: maybe(index + 3)?,
    })
}

fn unreadable(index: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error))
}

#[derive(Debug, thiserror::Error)]
#[error("no time")]
struct NoTime;
