//! A plan that waits for the user, changed in the editor and accepted as it is then.

use std::io::Write as _;

use antiphon_core::{Answer, ApprovalReply, Question};
use antiphon_project::error::ProjectError;

use super::outside::read_back;
use super::{Program, unusable};

impl Program<'_, '_> {
    /// Lets the user change the plan. What was saved is accepted; an unchanged or an empty plan answers nothing.
    pub(super) async fn edit_plan(&mut self) -> Result<(), ProjectError> {
        let asked = self.question.as_ref().and_then(|asked| asked.approval.question.clone());
        let Some(Question::Plan(asked)) = asked else { return Ok(()) };
        let file = tempfile::Builder::new().suffix(".md").tempfile().map_err(unusable)?;
        file.as_file().write_all(asked.plan.as_bytes()).map_err(unusable)?;
        let editor = format!("{} \"$1\"", self.options.editor);
        let path = file.path().to_string_lossy().into_owned();
        self.outside("/bin/sh", &["-c", &editor, "sh", &path]).await?;
        let edited = match read_back(file.path()) {
            Ok(edited) => edited.trim_end().to_owned(),
            Err(reason) => {
                self.warning = Some(reason);
                return Ok(());
            }
        };
        if edited.is_empty() || edited == asked.plan.trim_end() {
            self.warning = Some("The plan was not changed: y accepts it as it is".to_owned());
            return Ok(());
        }
        let answer = Answer { choices: Vec::new(), text: Some(edited) };
        self.decide(ApprovalReply::answering(answer)).await
    }
}
