//! Every written value is read back as the same value.

use std::fmt::Debug;

use antiphon_core::RawJson;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::any_conversation::message;
use crate::any_event::event;
use crate::any_exchange::{chat, control, interaction, invocation};
use crate::any_json::{object, value};
use crate::config;
use crate::schema::faults;

/// Through text, through bytes, through a value in memory, and with white space around it.
fn survives<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = serde_json::to_string(value).unwrap();
    prop_assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    prop_assert_eq!(&serde_json::from_slice::<T>(text.as_bytes()).unwrap(), value);
    prop_assert_eq!(&serde_json::from_reader::<_, T>(text.as_bytes()).unwrap(), value);
    let pretty = format!("\n{}\n", serde_json::to_string_pretty(value).unwrap());
    prop_assert_eq!(&serde_json::from_str::<T>(&pretty).unwrap(), value);
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_message_survives_its_json(message in message()) {
        survives(&message)?;
    }

    #[test]
    fn any_event_survives_its_json_and_fits_its_schema(event in event()) {
        survives(&event)?;
        prop_assert_eq!(faults(&serde_json::to_value(&event).unwrap()), [""; 0]);
    }

    #[test]
    fn any_interaction_survives_its_json(interaction in interaction()) {
        survives(&interaction)?;
        survives(&interaction.content)?;
    }

    #[test]
    fn any_invocation_survives_its_json(invocation in invocation()) {
        survives(&invocation)?;
    }

    #[test]
    fn any_chat_request_survives_its_json(chat in chat()) {
        survives(&chat)?;
    }

    #[test]
    fn any_control_request_survives_its_json(control in control()) {
        survives(&control)?;
    }

    #[test]
    fn raw_json_survives_byte_for_byte(json in object(), around in "[ \t\r\n]{0,3}") {
        let text = json.as_str();
        let padded = format!("{around}{text}{around}");
        prop_assert_eq!(&RawJson::parse(&padded).unwrap(), &json);
        prop_assert_eq!(serde_json::to_string(&json).unwrap(), text);
        prop_assert_eq!(&serde_json::from_str::<RawJson>(&padded).unwrap(), &json);
        let listed: Vec<RawJson> = serde_json::from_str(&format!("[{padded},{padded}]")).unwrap();
        prop_assert_eq!(listed, [json.clone(), json]);
    }

    #[test]
    fn any_value_has_raw_json_that_reads_as_the_value(value in value()) {
        let raw = RawJson::of(&value).unwrap();
        prop_assert_eq!(raw.is_object(), value.is_object());
        prop_assert_eq!(raw.to::<serde_json::Value>().unwrap(), value);
    }
}
