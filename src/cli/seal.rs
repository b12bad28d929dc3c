//! `jess seal`: text into an envelope.

use super::document;
use crate::envelope::profile::{Profile, TagStyle};
use crate::envelope::{Nonce, prompt};
use crate::exit::Exit;
use crate::untrusted::Untrusted;
use std::path::PathBuf;

/// Put untrusted text into an envelope for a model, on stdout.
#[derive(clap::Args)]
pub struct Args {
    /// The text; `-` or nothing is stdin. A link is followed.
    file: Option<PathBuf>,
    /// What the text is, as the model is told.
    #[arg(long, default_value = "document")]
    kind: String,
    /// Where it comes from; the file's name when not given.
    #[arg(long)]
    origin: Option<String>,
    /// The model that will read it, for the shape of the envelope.
    #[arg(long, default_value = "")]
    model: String,
    /// Shape of the envelope: nonce-only, anthropic-document, openai-untrusted-text, secalign, begin-end-marker or passthrough.
    #[arg(long)]
    style: Option<String>,
    /// Put a random sentinel after each white space. Can make a model refuse.
    #[arg(long)]
    datamark: bool,
    /// Encode the text as base64. Can make a model refuse.
    #[arg(long)]
    base64: bool,
    /// Print what the model has to be told about the envelope first, then a blank line.
    #[arg(long)]
    priming: bool,
}

/// Seals the file or stdin.
pub fn run(args: Args) -> Exit {
    let mut profile =
        Profile { datamarking: args.datamark, base64_code: args.base64, ..Profile::for_model(&args.model) };
    if let Some(style) = &args.style {
        let Some(style) = TagStyle::parse(style) else {
            tracing::error!(
                "unknown style; use nonce-only, anthropic-document, openai-untrusted-text, secalign, begin-end-marker or passthrough"
            );
            return Exit::USAGE;
        };
        profile.tag_style = style;
    }
    let name = args.file.as_ref().map_or_else(|| "stdin".into(), |f| f.to_string_lossy().into_owned());
    let text = match document::read(args.file.as_deref()) {
        Ok(text) => text,
        Err(failed) => return failed.tell(),
    };
    let nonce = Nonce::fresh();
    let sentinel = format!("{}{}", prompt::SENTINEL, Nonce::short().as_str().get(..4).unwrap_or_default());
    let block = prompt::Block {
        content: text,
        kind: Untrusted::new(args.kind),
        origin: Untrusted::new(args.origin.unwrap_or(name)),
    };
    let sealed = match prompt::render_block(&block, nonce.as_str(), &profile, &sentinel) {
        Ok(sealed) => sealed,
        Err(error) => {
            tracing::error!("cannot seal: {error}");
            return Exit::USAGE;
        }
    };
    let mut out = String::new();
    if args.priming {
        // The width and the sentinel of this envelope differ from the batch form.
        let told = prompt::system_text("", &profile)
            .replace("XXXXXXXXXXXXXXXX", &"X".repeat(32))
            .replace("16-character", "32-character")
            .replace("U+02EE (\u{2ee})", &format!("\"{sentinel}\""));
        out.push_str(&told);
        out.push_str("\n\n");
    }
    out.push_str(&sealed);
    out.push('\n');
    match document::write(&out) {
        Ok(()) => Exit::OK,
        Err(failed) => failed.tell(),
    }
}
