//! Frames: a length (`u32`, little endian), then that many bytes.
//!
//! | frame | bytes |
//! |---|---|
//! | request | `u16` length and text of [`VERSION`]; `u32` length and the environment, `NAME=VALUE` each ended by a NUL; the event |
//! | reply | exit status; `u32` length and the document for stdout; text for stderr |

/// Both ends must be of one version: an older daemon is told so and ends.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest event that goes to the daemon, in bytes; a longer one is judged by the hook process itself.
pub const EVENT_MAX: usize = 1 << 20;
/// Longest frame, in bytes.
pub const FRAME_MAX: usize = EVENT_MAX + (1 << 20);
/// Status of a reply that says: judge this yourself.
pub const YOURSELF: u8 = 255;

/// What the hook asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The environment block.
    pub env: &'a [u8],
    /// The event.
    pub event: &'a [u8],
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// 0, 2, or [`YOURSELF`].
    pub exit: u8,
    /// For stdout.
    pub document: Vec<u8>,
    /// For stderr.
    pub message: Vec<u8>,
}

/// A request's frame; `None` when it would be longer than [`FRAME_MAX`].
pub fn request(env: &[u8], event: &[u8]) -> Option<Vec<u8>> {
    let length = 2 + VERSION.len() + 4 + env.len() + event.len();
    if length > FRAME_MAX || event.len() > EVENT_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(4 + length);
    out.extend((length as u32).to_le_bytes());
    out.extend((VERSION.len() as u16).to_le_bytes());
    out.extend(VERSION.as_bytes());
    out.extend((env.len() as u32).to_le_bytes());
    out.extend(env);
    out.extend(event);
    Some(out)
}

/// Reads a request without its length; `None` when it is malformed or of another version.
pub fn read_request(bytes: &[u8]) -> Option<Request<'_>> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (version, rest) = rest.split_at_checked(u16::from_le_bytes(*length) as usize)?;
    if version != VERSION.as_bytes() {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (env, event) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Request { env, event })
}

/// A reply's frame.
pub fn reply(reply: &Reply) -> Vec<u8> {
    let length = 1 + 4 + reply.document.len() + reply.message.len();
    let mut out = Vec::with_capacity(4 + length);
    out.extend((length as u32).to_le_bytes());
    out.push(reply.exit);
    out.extend((reply.document.len() as u32).to_le_bytes());
    out.extend(&reply.document);
    out.extend(&reply.message);
    out
}

/// Reads a reply without its length.
pub fn read_reply(bytes: &[u8]) -> Option<Reply> {
    let (exit, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (document, message) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Reply { exit: *exit, document: document.to_vec(), message: message.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_cut_frame_is_not() {
        let frame = request(b"A=1\0B=\0", b"{}").unwrap();
        assert_eq!(read_request(&frame[4..]), Some(Request { env: b"A=1\0B=\0", event: b"{}" }));
        for end in 4..frame.len() - 2 {
            let seen = read_request(&frame[4..end]);
            assert!(seen.is_none_or(|r| r.event.len() < 2), "{end}");
        }
        let one = Reply { exit: 2, document: b"{}".to_vec(), message: b"why".to_vec() };
        let frame = reply(&one);
        assert_eq!(read_reply(&frame[4..]), Some(one));
        assert_eq!(read_reply(&[0, 9, 0, 0, 0, 1]), None);
    }

    #[test]
    fn an_event_beyond_the_bound_makes_no_frame() {
        assert!(request(b"", &vec![b' '; EVENT_MAX]).is_some());
        assert!(request(b"", &vec![b' '; EVENT_MAX + 1]).is_none());
    }
}
