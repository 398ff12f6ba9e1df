//! Compressed messages: both ways, and messages of a hostile peer.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use pando_wire::{
    Body, Codec, Compressor, Message, MsgFlags, OpMsgWriter, Recovery, WireError, may_be_compressed,
};

fn document(filler: usize) -> Vec<u8> {
    let length = i32::try_from(5 + filler).unwrap();
    let mut document = length.to_le_bytes().to_vec();
    document.extend((0..filler).map(|at| u8::try_from(at % 7).unwrap()));
    document.push(0);
    document
}

fn message(filler: usize, flags: MsgFlags) -> Vec<u8> {
    let mut out = Vec::new();
    let writer = OpMsgWriter::begin(&mut out, 5, 6, flags);
    writer.body(&mut out, &document(filler));
    writer.finish(&mut out).unwrap();
    out
}

fn unpack(codec: &mut Codec, frame: &[u8]) -> Result<Vec<u8>, WireError> {
    let message = Message::decode(frame)?;
    let Body::Compressed(compressed) = message.body else { panic!("an OP_COMPRESSED") };
    let mut out = b"older content".to_vec();
    codec.decompress(&message.header, &compressed, &mut out)?;
    Ok(out)
}

fn envelope(original: i32, uncompressed: i32, id: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    for field in [i32::try_from(25 + content.len()).unwrap(), 5, 6, 2012, original, uncompressed] {
        frame.extend_from_slice(&field.to_le_bytes());
    }
    frame.push(id);
    frame.extend_from_slice(content);
    frame
}

#[test]
fn every_compressor_gives_back_the_same_frame() {
    let mut codec = Codec::new();
    for compressor in Compressor::ALL {
        for filler in [0, 1, 100, 70_000, 3_000_000] {
            for flags in [MsgFlags::NONE, MsgFlags::CHECKSUM_PRESENT] {
                let original = message(filler, flags);
                let mut out = b"another reply".to_vec();
                let start = out.len();
                out.extend_from_slice(&original);
                codec.compress(&mut out, start, compressor).unwrap();
                assert!(out.starts_with(b"another reply"));
                let unpacked = unpack(&mut codec, &out[start..]).unwrap();
                assert!(unpacked == original, "{compressor}, {filler}");
                assert!(Message::decode(&unpacked).is_ok());
            }
        }
    }
}

#[test]
fn a_compressed_message_within_a_compressed_message_is_refused() {
    let error = Message::decode(&envelope(2012, 10, 0, &[0; 10])).expect_err("nested");
    assert!(matches!(error, WireError::NestedCompression));
    assert_eq!(error.recovery(), Recovery::Close);
}

#[test]
fn an_unknown_compressor_is_refused() {
    let error = Message::decode(&envelope(2013, 10, 4, &[0; 10])).expect_err("unknown");
    assert!(matches!(error, WireError::UnknownCompressor { id: 4 }));
}

#[test]
fn a_claimed_length_that_cannot_be_is_refused_before_anything_is_allocated_for_it() {
    let mut codec = Codec::new();
    for id in 0..4 {
        for claimed in [-1, i32::MIN, i32::MAX, 48_000_000] {
            let error = unpack(&mut codec, &envelope(2013, claimed, id, &[0; 10])).expect_err("impossible");
            assert!(
                matches!(error, WireError::UncompressedLength { claimed: found } if found == claimed),
                "{id} {claimed}"
            );
        }
    }
}

#[test]
fn a_length_that_is_not_what_comes_out_is_refused() {
    let mut codec = Codec::new();
    for compressor in Compressor::ALL {
        let original = message(1000, MsgFlags::NONE);
        let mut frame = original.clone();
        codec.compress(&mut frame, 0, compressor).unwrap();
        let right = i32::try_from(original.len() - 16).unwrap();
        for wrong in [0, right - 1, right + 1] {
            frame[20..24].copy_from_slice(&wrong.to_le_bytes());
            let error = unpack(&mut codec, &frame).expect_err("another length");
            assert_eq!(error.recovery(), Recovery::Close, "{compressor} {wrong} {error}");
        }
        frame[20..24].copy_from_slice(&right.to_le_bytes());
        assert!(
            unpack(&mut codec, &frame).unwrap() == original,
            "{compressor}: the codec goes on after errors"
        );
    }
}

#[test]
fn damaged_content_is_an_error() {
    let mut codec = Codec::new();
    for compressor in [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
        let mut frame = message(1000, MsgFlags::NONE);
        codec.compress(&mut frame, 0, compressor).unwrap();
        let cut = frame.len() - 3;
        frame.truncate(cut);
        frame[0..4].copy_from_slice(&i32::try_from(cut).unwrap().to_le_bytes());
        assert!(unpack(&mut codec, &frame).is_err(), "{compressor}");
    }
}

#[test]
fn handshake_and_secrets_are_never_compressed() {
    for command in
        ["hello", "isMaster", "ismaster", "saslStart", "saslContinue", "createUser", "updateUser", "getnonce"]
    {
        assert!(!may_be_compressed(command), "{command}");
    }
    for command in ["find", "insert", "ping", "helloo", ""] {
        assert!(may_be_compressed(command), "{command}");
    }
}
