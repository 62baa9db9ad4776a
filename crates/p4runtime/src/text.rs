//! P4Info as text, the form in which files hold it.

use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

use crate::proto::p4::config::v1::P4Info;

/// The protocol's files.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// A text is no P4Info.
#[derive(Debug, thiserror::Error)]
#[error("this is no P4Info: {0}")]
pub struct TextError(String);

fn descriptor() -> Result<MessageDescriptor, TextError> {
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|error| TextError(error.to_string()))?;
    pool.get_message_by_name("p4.config.v1.P4Info").ok_or_else(|| TextError("its description is missing".to_owned()))
}

/// P4Info as text.
pub fn to_text(info: &P4Info) -> Result<String, TextError> {
    let message = DynamicMessage::decode(descriptor()?, &info.encode_to_vec()[..]);
    let message = message.map_err(|error| TextError(error.to_string()))?;
    let text = message.to_text_format_with_options(&FormatOptions::new().pretty(true));
    Ok(format!("# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n{text}\n"))
}

/// P4Info from text.
pub fn from_text(text: &str) -> Result<P4Info, TextError> {
    let message =
        DynamicMessage::parse_text_format(descriptor()?, text).map_err(|error| TextError(error.to_string()))?;
    P4Info::decode(&message.encode_to_vec()[..]).map_err(|error| TextError(error.to_string()))
}
