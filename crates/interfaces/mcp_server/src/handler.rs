//! The handler of all methods, for standard input and for HTTP alike.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InputRequiredResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::task::JoinSet;

use crate::agent_offer::AgentOffer;
use crate::approval;
use crate::backend::{Backend, McpRequest};
use crate::call::{self, OnCancel, Wait};
use crate::failure::Failure;
use crate::{mcp_task, prompts, resources, task_tools, tools};

const INSTRUCTIONS: &str = "Each agent of this project is a tool: a call gives it a task and returns the result. The \
    result has a `taskId` and a `sessionId`: pass the latter as `session` to continue the conversation. A task that \
    runs long or waits for a person is looked after with the tools `task_…`.";

/// Subscriptions of one client, at most.
const SUBSCRIPTIONS_MAX: usize = 64;

/// Handles the requests of one client.
pub(crate) struct McpHandler {
    backend: Backend,
    /// Watchers of the resources that the client has subscribed to (2025-11-25 and older).
    subscriptions: Mutex<HashMap<String, JoinSet<()>>>,
}

impl McpHandler {
    pub(crate) fn new(backend: Backend) -> Self {
        Self { backend, subscriptions: Mutex::default() }
    }

    fn request(&self, context: &RequestContext<RoleServer>) -> Result<McpRequest, ErrorData> {
        self.backend.request(&context.extensions)
    }

    /// Stops the watcher of a resource.
    fn unwatch(&self, uri: &str) {
        let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        drop(subscriptions.remove(uri));
    }
}

/// Calls the tool of an agent.
async fn call_agent(
    request: &McpRequest,
    agent: &AgentOffer,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let (task_id, feed) = match &params.request_state {
        // The client comes back with answers to the questions of the result before.
        Some(state) => {
            let task = mcp_task::of_request_state(request, agent, state).await?;
            let feed = request.follow(&task).await?;
            let answers = params.input_responses.clone().unwrap_or_default();
            mcp_task::answer(request, &task.task_id, answers).await?;
            (task.task_id, feed)
        }
        None if params.input_responses.is_some() => {
            return Err(Failure::invalid("`inputResponses` without `requestState`: send both"));
        }
        None => call::start(request, agent, params, context).await?,
    };
    if params.request_state.is_none()
        && context.client_capabilities().is_some_and(|client| client.supports_tasks())
    {
        return Ok(mcp_task::created(&request.reader().await?, &task_id).await?.into());
    }
    let wait = Wait::new(request, context, task_id, feed, OnCancel::CancelTask);
    let view = wait.run().await?;
    let is_new =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    match &view.approval {
        Some(asked) if is_new && call::may_ask(request, context) => {
            let questions = Some(approval::input_requests(asked)?);
            let state = Some(mcp_task::request_state(&view.summary.task_id));
            Ok(InputRequiredResult::new(questions, state).into())
        }
        Some(_) | None => Ok(view.tool_result().into()),
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_tasks()
            .build();
        let implementation = Implementation::new("antiphon", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(implementation.with_title("Antiphon"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let agents = self.request(&context)?.agents().await.map_err(Failure::into_error)?;
        Ok(ListToolsResult::with_all_items(tools::tools(&agents)))
    }

    async fn call_tool(
        &self,
        mut params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = self.request(&context)?;
        let agents = request.agents().await.map_err(Failure::into_error)?;
        let called = if let Some(agent) = agents.iter().find(|offer| offer.tool == params.name) {
            call_agent(&request, agent, &params, &context).await
        } else {
            let arguments = params.arguments.take();
            match task_tools::call(&request, &context, &params.name, arguments).await {
                Some(called) => called.map(CallToolResponse::from),
                None => {
                    let message = format!("there is no tool `{}`: see `tools/list`", params.name);
                    return Err(ErrorData::invalid_params(message, None));
                }
            }
        };
        // The client's model reads what went wrong.
        Ok(called.unwrap_or_else(|failure| failure.into_tool_result().into()))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let agents = self.request(&context)?.agents().await.map_err(Failure::into_error)?;
        Ok(ListPromptsResult::with_all_items(prompts::prompts(&agents)))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let agents = self.request(&context)?.agents().await.map_err(Failure::into_error)?;
        Ok(prompts::prompt(&agents, &params).map_err(Failure::into_error)?.into())
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let request = self.request(&context)?;
        let cursor = params.and_then(|params| params.cursor);
        resources::list(&request, cursor.as_deref()).await.map_err(Failure::into_error)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let request = self.request(&context)?;
        Ok(resources::read(&request, &params.uri).await.map_err(Failure::into_error)?.into())
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = self.request(&context)?;
        let uri = params.uri;
        let mut watched = resources::watch(&request, &uri).await.map_err(Failure::into_error)?;
        let peer = context.peer.clone();
        let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        if subscriptions.len() >= SUBSCRIPTIONS_MAX && !subscriptions.contains_key(&uri) {
            let message = format!("{SUBSCRIPTIONS_MAX} subscriptions are open: end one");
            return Err(ErrorData::invalid_request(message, None));
        }
        let subscription = subscriptions.entry(uri.clone()).or_default();
        subscription.abort_all();
        subscription.spawn(async move {
            while watched.changed().await {
                let update = rmcp::model::ResourceUpdatedNotificationParam::new(uri.clone());
                if peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unwatch(&params.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| resources::is_task(uri));
            uris.truncate(SUBSCRIPTIONS_MAX);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = self.request(context.request_context())?;
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let mut watchers = JoinSet::new();
        for uri in uris {
            // One that the caller may not see is as quiet as one that does not change.
            let Ok(mut watched) = resources::watch(&request, &uri).await else { continue };
            let sink = context.sink().clone();
            watchers.spawn(async move {
                while watched.changed().await {
                    if sink.notify_resource_updated(uri.clone()).await.is_err() {
                        return;
                    }
                }
            });
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = request.ending() => {}
        }
        Ok(())
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let request = self.request(&context)?;
        mcp_task::get(&request, &context, &params.task_id).await.map_err(Failure::into_error)
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = self.request(&context)?;
        let update = async {
            let task = request.task(&params.task_id).await?;
            mcp_task::answer(&request, &task.task_id, params.input_responses).await
        };
        update.await.map_err(Failure::into_error)
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = self.request(&context)?;
        let cancel = async {
            let task = request.task(&params.task_id).await?;
            task_tools::cancel_task(&request, &task).await
        };
        cancel.await.map_err(Failure::into_error)
    }
}
