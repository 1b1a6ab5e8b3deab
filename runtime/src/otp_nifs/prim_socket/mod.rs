//! The native functions of `prim_socket`: sockets as `socket` has them. Source: `prim_socket_nif.c`,
//! `unix_socket_syncio.c`, OTP 29.
//!
//! A call that would wait answers `select`, and its caller is sent `{'$socket', Socket, select, Reference}` when it may
//! call again (`state.rs`). In a recorded run all answers are recorded, so a replay opens nothing.
//!
//! Differs: SCTP is not here. What a stream has taken of a write that is not complete is counted, what a read has given
//! is counted once, and waits of reads are counted.

pub(super) mod address;
mod answers;
mod control;
mod counts;
mod info;
mod ioctl;
pub(super) mod names;
mod open;
mod options;
mod otp;
mod recv;
mod registry;
mod send;
mod sendfile;
mod state;
mod values;

use crate::bif::bifs;
pub(crate) use info::configure;
use info::{nif_command_1, nif_info_0, nif_info_1, nif_supports_0, nif_supports_1};
use ioctl::{nif_ioctl_2, nif_ioctl_3, nif_ioctl_4};
use open::{
    nif_accept_2, nif_bind_2, nif_cancel_3, nif_close_1, nif_connect_1, nif_connect_3,
    nif_finalize_close_1, nif_listen_2, nif_open_2, nif_open_4, nif_peername_1, nif_shutdown_2,
    nif_sockname_1,
};
use options::{nif_getopt_3, nif_getopt_5, nif_setopt_5};
use recv::{nif_recv_4, nif_recvfrom_4, nif_recvmmsg_6, nif_recvmsg_5};
use send::{nif_send_4, nif_sendmmsg_4, nif_sendmsg_5, nif_sendto_5, nif_sendv_3};
use sendfile::{nif_sendfile_1, nif_sendfile_4, nif_sendfile_5};

bifs! {
    bif prim_socket:"nif_info"/0 => nif_info_0, answer;
    bif prim_socket:"nif_info"/1 => nif_info_1, answer;
    bif prim_socket:"nif_supports"/0 => nif_supports_0, own;
    bif prim_socket:"nif_supports"/1 => nif_supports_1, answer;
    bif prim_socket:"nif_command"/1 => nif_command_1, again;
    bif prim_socket:"nif_open"/2 => nif_open_2, answer;
    bif prim_socket:"nif_open"/4 => nif_open_4, answer;
    bif prim_socket:"nif_bind"/2 => nif_bind_2, answer;
    bif prim_socket:"nif_connect"/1 => nif_connect_1, answer;
    bif prim_socket:"nif_connect"/3 => nif_connect_3, answer;
    bif prim_socket:"nif_listen"/2 => nif_listen_2, answer;
    bif prim_socket:"nif_accept"/2 => nif_accept_2, answer;
    bif prim_socket:"nif_send"/4 => nif_send_4, answer;
    bif prim_socket:"nif_sendto"/5 => nif_sendto_5, answer;
    bif prim_socket:"nif_sendmsg"/5 => nif_sendmsg_5, answer;
    bif prim_socket:"nif_sendmmsg"/4 => nif_sendmmsg_4, answer;
    bif prim_socket:"nif_sendv"/3 => nif_sendv_3, answer;
    dirty_io prim_socket:"nif_sendfile"/5 => nif_sendfile_5, answer;
    dirty_io prim_socket:"nif_sendfile"/4 => nif_sendfile_4, answer;
    dirty_io prim_socket:"nif_sendfile"/1 => nif_sendfile_1, answer;
    bif prim_socket:"nif_recv"/4 => nif_recv_4, answer;
    bif prim_socket:"nif_recvfrom"/4 => nif_recvfrom_4, answer;
    bif prim_socket:"nif_recvmsg"/5 => nif_recvmsg_5, answer;
    bif prim_socket:"nif_recvmmsg"/6 => nif_recvmmsg_6, answer;
    bif prim_socket:"nif_close"/1 => nif_close_1, answer;
    dirty_io prim_socket:"nif_finalize_close"/1 => nif_finalize_close_1, answer;
    bif prim_socket:"nif_shutdown"/2 => nif_shutdown_2, answer;
    bif prim_socket:"nif_setopt"/5 => nif_setopt_5, answer;
    bif prim_socket:"nif_getopt"/3 => nif_getopt_3, answer;
    bif prim_socket:"nif_getopt"/5 => nif_getopt_5, answer;
    bif prim_socket:"nif_sockname"/1 => nif_sockname_1, answer;
    bif prim_socket:"nif_peername"/1 => nif_peername_1, answer;
    dirty_io prim_socket:"nif_ioctl"/2 => nif_ioctl_2, answer;
    dirty_io prim_socket:"nif_ioctl"/3 => nif_ioctl_3, answer;
    dirty_io prim_socket:"nif_ioctl"/4 => nif_ioctl_4, answer;
    bif prim_socket:"nif_cancel"/3 => nif_cancel_3, answer;
}

/// Bytes of a read whose caller names none.
const RECEIVE_BYTES: usize = 8 * 1024;

/// Room for control messages that come.
const RECEIVE_CONTROL: usize = 1024;

/// Room for control messages that are sent.
const SEND_CONTROL: usize = 1024;

/// Binaries that one call sends at most.
const IOV_MAX: usize = 1024;
