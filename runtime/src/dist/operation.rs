//! The operations of the distribution protocol, as the first element of a control message says them. Source: `enum dop` in
//! `dist.h`, OTP 29.

use crate::term::Term;

macro_rules! operations {
    ($($(#[doc = $doc:literal])* $number:literal = $name:ident;)*) => {
        /// What a control message says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Operation {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Operation {
            /// The operation of this number.
            pub(super) fn of(number: i64) -> Option<Operation> {
                match number {
                    $($number => Some(Operation::$name),)*
                    _ => None,
                }
            }

            /// Its number, as a control message begins with it.
            pub(super) fn term(self) -> Term<'static> {
                Term::small(self as i64)
            }
        }
    };
}

operations! {
    /// `{1, From, To}`
    1 = Link;
    /// `{2, '', To}`, and the message.
    2 = Send;
    /// `{3, From, To, Reason}`
    3 = Exit;
    /// `{6, From, '', ToName}`, and the message.
    6 = RegSend;
    /// `{7, Leader, To}`
    7 = GroupLeader;
    /// `{8, From, To, Reason}`
    8 = Exit2;
    /// `{12, '', To, Token}`, and the message.
    12 = SendTt;
    /// `{13, From, To, Token, Reason}`
    13 = ExitTt;
    /// `{16, From, '', ToName, Token}`, and the message.
    16 = RegSendTt;
    /// `{18, From, To, Token, Reason}`
    18 = Exit2Tt;
    /// `{19, From, To, Reference}`
    19 = MonitorP;
    /// `{20, From, To, Reference}`
    20 = DemonitorP;
    /// `{21, From, To, Reference, Reason}`
    21 = MonitorPExit;
    /// `{22, From, To}`, and the message.
    22 = SendSender;
    /// `{23, From, To, Token}`, and the message.
    23 = SendSenderTt;
    /// `{24, From, To}`, and the reason.
    24 = PayloadExit;
    /// `{25, From, To, Token}`, and the reason.
    25 = PayloadExitTt;
    /// `{26, From, To}`, and the reason.
    26 = PayloadExit2;
    /// `{27, From, To, Token}`, and the reason.
    27 = PayloadExit2Tt;
    /// `{28, From, To, Reference}`, and the reason.
    28 = PayloadMonitorPExit;
    /// `{29, Request, From, GroupLeader, {M, F, Arity}, Options}`, and the arguments.
    29 = SpawnRequest;
    /// `{30, Request, From, GroupLeader, {M, F, Arity}, Options, Token}`, and the arguments.
    30 = SpawnRequestTt;
    /// `{31, Request, To, Flags, Result}`
    31 = SpawnReply;
    /// `{32, Request, To, Flags, Result, Token}`
    32 = SpawnReplyTt;
    /// `{33, From, Alias}`, and the message.
    33 = AliasSend;
    /// `{34, From, Alias, Token}`, and the message.
    34 = AliasSendTt;
    /// `{35, Id, From, To}`
    35 = UnlinkId;
    /// `{36, Id, From, To}`
    36 = UnlinkIdAck;
    /// `{37, Flags, From, To}` or `{37, Flags, From, To, Token}`, and the message or the reason.
    37 = AltactSigSend;
}

impl Operation {
    /// As a recording tells of it: its number, and whether a message comes behind it.
    pub(super) fn told(self) -> (u64, bool) {
        (self as u64, self.is_message())
    }

    fn is_message(self) -> bool {
        use Operation::*;
        let is_send = matches!(self, Send | SendTt | SendSender | SendSenderTt);
        let to_name = matches!(self, RegSend | RegSendTt);
        is_send || to_name || matches!(self, AliasSend | AliasSendTt | AltactSigSend)
    }

    /// Where the process is named that a control message is for, counted from 0 behind the operation. `None` where that is still
    /// to be made.
    pub(super) fn receiver_at(self) -> Option<usize> {
        use Operation::*;
        match self {
            SpawnRequest | SpawnRequestTt => None,
            RegSend | RegSendTt | UnlinkId | UnlinkIdAck | AltactSigSend => Some(2),
            _ => Some(1),
        }
    }
}

/// Flags of [`Operation::AltactSigSend`].
pub(super) mod altact {
    pub(in crate::dist) const PRIORITY: i64 = 1;
    pub(in crate::dist) const TOKEN: i64 = 1 << 1;
    pub(in crate::dist) const ALIAS: i64 = 1 << 2;
    pub(in crate::dist) const NAME: i64 = 1 << 3;
    pub(in crate::dist) const EXIT: i64 = 1 << 4;
}

/// Flags of [`Operation::SpawnReply`].
pub(super) mod spawn_reply {
    pub(in crate::dist) const LINK: i64 = 1;
    pub(in crate::dist) const MONITOR: i64 = 1 << 1;
}
