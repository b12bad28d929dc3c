//! The scripted model is good enough for the real client.

use crate::support::isolation::loopback_only;
use crate::support::{Client, Conversation, Script, ScriptedModel, Turn, client, text, tool};
use serde_json::json;

#[test]
fn a_tool_call_runs_and_its_result_reaches_the_model() {
    loopback_only(|| {
        let model = ScriptedModel::start(Script::turns([
            Turn::of([text("I will look."), tool("Bash", json!({"command": "echo six times $((6 * 7))"}))]),
            Turn::of([text("It said forty-two.")]),
        ]))
        .unwrap();
        let place = client::Place::new();

        let run = Client::pinned().print(&place, &model, "look", ["--allowedTools", "Bash"]);

        assert!(run.status.success(), "{run:#?}");
        assert_eq!(run.answer(), "It said forty-two.");
        let results = model.tool_results();
        assert_eq!(results.len(), 1, "{results:#?}");
        assert_eq!(
            (results[0].tool.as_str(), results[0].text.as_str(), results[0].is_error),
            ("Bash", "six times 42", false)
        );
    });
}

#[test]
fn the_key_and_the_prompt_are_seen_by_the_model_in_one_request() {
    loopback_only(|| {
        let model = ScriptedModel::start(Script::turns([Turn::of([text("hello")])])).unwrap();
        let place = client::Place::new();

        Client::pinned().print(&place, &model, "say hello to Ada", std::iter::empty::<&str>());

        let requests = model.conversations();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].key(), Some(client::KEY));
        assert!(requests[0].tools().contains(&"Bash".to_string()), "{:?}", requests[0].tools());
        assert!(model.saw("say hello to Ada") && !model.saw("say hello to Grace"));
    });
}

#[test]
fn a_subagent_plays_its_own_conversation() {
    loopback_only(|| {
        let ask = json!({"description": "count", "prompt": "count the files", "subagent_type": "general-purpose",
                         "run_in_background": false});
        let model = ScriptedModel::start(
            Script::new()
                .conversation(
                    Conversation::new("helper").matching("count the files").turn([text("three files")]),
                )
                .conversation(Conversation::new("main").turn([tool("Agent", ask)]).turn([text("done")])),
        )
        .unwrap();
        let place = client::Place::new();

        let run = Client::pinned().print(&place, &model, "ask a helper", ["--allowedTools", "Agent"]);

        assert_eq!(run.answer(), "done", "{run:#?}");
        let helped = model.conversations().iter().any(|r| r.conversation.as_deref() == Some("helper"));
        assert!(helped);
        let results = model.tool_results();
        assert!(results.iter().any(|r| r.tool == "Agent" && r.text.contains("three files")), "{results:#?}");
    });
}
