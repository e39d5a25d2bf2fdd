use antiphon_core::{ProviderError, Request};

use crate::world::{RecordingPath, message};

const PAGE: &str = include_str!("../../../../../docs/record-replay.md");

#[tokio::test]
async fn the_recording_of_the_page_can_be_replayed() {
    let start = PAGE.find("```json\n").expect("an example") + "```json\n".len();
    let example = &PAGE[start..start + PAGE[start..].find("```").expect("its end")];
    let place = RecordingPath::holding(example);
    let recording = place.load();
    assert_eq!((recording.exchanges(), recording.unfinished()), (2, 0));
    let first = example.lines().next().expect("a line");
    let line: serde_json::Value = serde_json::from_str(first).expect("JSON");
    let request: Request = serde_json::from_value(line["request"].clone()).expect("a request");
    let replay = place.replay();
    let (answer, failure) = message(&replay, request.clone()).await;
    assert_eq!((answer.text().as_str(), failure), ("Hello!", None));
    let (_, failure) = message(&replay, request).await;
    let overloaded = ProviderError::Overloaded { message: "busy".to_owned(), retry_after: None };
    assert_eq!(failure, Some(overloaded.into()));
}
