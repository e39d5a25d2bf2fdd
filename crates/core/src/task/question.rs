//! Questions of an agent to a person, other than whether a call may run, and their answers.
//!
//! A question waits as an [`Approval`](crate::Approval) does: it is recorded with the request, and the first decision counts.
//!
//! | kind     | `allow_once` means                        | `deny` means                              |
//! |----------|-------------------------------------------|-------------------------------------------|
//! | `choice` | the answer, or the default when it has none | no answer; the comment says why         |
//! | `plan`   | the plan is accepted, or the answer's text in its place | the plan is rejected; the comment says why |

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Bytes of the text of a question, at most.
pub const QUESTION_BYTES_MAX: usize = 4096;

/// Choices of a question, at most. A person reads all of them.
pub const CHOICES_MAX: usize = 20;

/// Bytes of the label of a choice, at most.
pub const LABEL_BYTES_MAX: usize = 200;

/// Bytes of the description of a choice, at most.
pub const CHOICE_DESCRIPTION_BYTES_MAX: usize = 1000;

/// Bytes of a plan, and of the text of an answer, at most.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// A question with choices, or one that is answered in words.
    Choice(ChoiceQuestion),
    /// Whether the task may go on with this plan.
    Plan(PlanQuestion),
}

/// A question with choices, or one that is answered in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChoiceQuestion {
    /// The question.
    pub text: String,
    /// The choices. Empty: it is answered in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Whether several choices may be taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
    /// Whether an answer in words is possible, also beside choices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
    /// The answer of a person who only consents. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Answer>,
}

/// A choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// What it is called in the answer.
    pub label: String,
    /// What it means. Absent: the label says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The plan of a task that changes nothing before a person has accepted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanQuestion {
    /// The plan, as the agent wrote it.
    pub plan: String,
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Labels of the choices that were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The answer in words; of a plan, the plan that is to be carried out instead. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Why a question cannot be asked, or an answer is none. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A text is empty.
    #[error("{what} is empty: write it")]
    Empty {
        /// The text.
        what: &'static str,
    },
    /// A text is too long.
    #[error("{what} has {bytes} bytes, at most {bytes_max} are possible: shorten it")]
    TooLong {
        /// The text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// There are too many choices.
    #[error("{count} choices, at most {CHOICES_MAX} are possible: leave some out")]
    TooManyChoices {
        /// Their number.
        count: usize,
    },
    /// Two choices have the same label.
    #[error("two choices are called `{label}`: give each a label of its own")]
    SameLabel {
        /// The label.
        label: String,
    },
    /// The question has neither choices nor an answer in words.
    #[error("there is no way to answer: add choices, or allow `free_text`")]
    NoAnswer,
    /// The answer has a choice that the question does not have.
    #[error("`{label}` is none of the choices; they are: {choices}")]
    NoChoice {
        /// The label in the answer.
        label: String,
        /// The labels of the question.
        choices: String,
    },
    /// The answer has several choices, and the question is for one.
    #[error("only one choice is possible here: take one")]
    OnlyOne,
    /// The answer is in words, and the question is not answered so.
    #[error("an answer in words is not possible here; take one of the choices: {choices}")]
    NoFreeText {
        /// The labels of the question.
        choices: String,
    },
    /// There is neither an answer nor a default.
    #[error(
        "this is a question without a default: give an answer, or deny it to leave it unanswered"
    )]
    NoDefault,
}

impl Question {
    /// Checks the limits of a question.
    pub fn check(&self) -> Result<(), QuestionError> {
        match self {
            Self::Choice(question) => question.check(),
            Self::Plan(PlanQuestion { plan }) => check_text("the plan", plan, ANSWER_BYTES_MAX),
        }
    }

    /// The answer that a consent with `answer` gives, checked. A consent to a question without an answer is its
    /// default; a consent to a plan without one needs none.
    pub fn answered(&self, answer: Option<Answer>) -> Result<Option<Answer>, QuestionError> {
        match (self, answer) {
            (Self::Choice(question), Some(answer)) => {
                question.check_answer(&answer)?;
                Ok(Some(answer))
            }
            (Self::Choice(question), None) => {
                question.default.clone().map(Some).ok_or(QuestionError::NoDefault)
            }
            (Self::Plan(_), None) => Ok(None),
            (Self::Plan(_), Some(Answer { choices, text })) => {
                if let Some(label) = choices.into_iter().next() {
                    return Err(QuestionError::NoChoice { label, choices: "none".to_owned() });
                }
                let text = text.ok_or(QuestionError::Empty { what: "the plan" })?;
                check_text("the plan", &text, ANSWER_BYTES_MAX)?;
                Ok(Some(Answer { choices: Vec::new(), text: Some(text) }))
            }
        }
    }
}

impl ChoiceQuestion {
    fn check(&self) -> Result<(), QuestionError> {
        check_text("the question", &self.text, QUESTION_BYTES_MAX)?;
        if self.choices.len() > CHOICES_MAX {
            return Err(QuestionError::TooManyChoices { count: self.choices.len() });
        }
        if self.choices.is_empty() && !self.free_text {
            return Err(QuestionError::NoAnswer);
        }
        let mut labels = BTreeSet::new();
        for Choice { label, description } in &self.choices {
            check_text("the label of a choice", label, LABEL_BYTES_MAX)?;
            if let Some(description) = description {
                let what = "the description of a choice";
                check_text(what, description, CHOICE_DESCRIPTION_BYTES_MAX)?;
            }
            if !labels.insert(label.as_str()) {
                return Err(QuestionError::SameLabel { label: label.clone() });
            }
        }
        self.default.as_ref().map_or(Ok(()), |default| self.check_answer(default))
    }

    fn check_answer(&self, answer: &Answer) -> Result<(), QuestionError> {
        let unknown = |label: &&String| !self.choices.iter().any(|known| known.label == **label);
        if let Some(label) = answer.choices.iter().find(unknown) {
            return Err(QuestionError::NoChoice { label: label.clone(), choices: self.labels() });
        }
        let taken: BTreeSet<&String> = answer.choices.iter().collect();
        if taken.len() != answer.choices.len() || (taken.len() > 1 && !self.multiple) {
            return Err(QuestionError::OnlyOne);
        }
        match &answer.text {
            Some(_) if !self.free_text => Err(QuestionError::NoFreeText { choices: self.labels() }),
            Some(text) => check_text("the answer", text, ANSWER_BYTES_MAX),
            // Of several, none is an answer, too.
            None if answer.choices.is_empty() && !self.multiple => {
                Err(QuestionError::Empty { what: "the answer" })
            }
            None => Ok(()),
        }
    }

    /// Reads an answer that a person wrote: numbers or labels of choices, separated by commas, or the answer in words.
    /// `None` when it is none of these.
    pub fn read_answer(&self, line: &str) -> Option<Answer> {
        let label = |name: &str| {
            let name = name.trim();
            let numbered = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let numbered = numbered.and_then(|index| self.choices.get(index));
            let mut choices = self.choices.iter();
            let named = || choices.find(|choice| choice.label.eq_ignore_ascii_case(name));
            numbered.or_else(named).map(|choice| choice.label.clone())
        };
        let answer = if let Some(one) = label(line) {
            Some(Answer { choices: vec![one], text: None })
        } else {
            let several: Option<Vec<String>> = line.split(',').map(label).collect();
            match several.filter(|_| self.multiple) {
                Some(choices) => Some(Answer { choices, text: None }),
                None => self
                    .free_text
                    .then(|| Answer { choices: Vec::new(), text: Some(line.to_owned()) }),
            }
        };
        answer.filter(|answer| self.check_answer(answer).is_ok())
    }

    /// The labels of the choices, as an error lists them.
    pub fn labels(&self) -> String {
        let labels: Vec<&str> = self.choices.iter().map(|choice| choice.label.as_str()).collect();
        if labels.is_empty() { "none".to_owned() } else { labels.join(", ") }
    }
}

fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<(), QuestionError> {
    if text.trim().is_empty() {
        return Err(QuestionError::Empty { what });
    }
    if text.len() > bytes_max {
        return Err(QuestionError::TooLong { what, bytes: text.len(), bytes_max });
    }
    Ok(())
}
