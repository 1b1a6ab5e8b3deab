//! What `inet:getstat/1,2` tells of a socket. Source: `inet_output_count()` and those behind it.

/// Counts of packets and bytes.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    sent: Direction,
    received: Direction,
    /// How far packets that were received have been from their average, on average.
    deviation: f64,
}

#[derive(Debug, Default)]
struct Direction {
    packets: u64,
    bytes: u64,
    largest: u64,
    average: f64,
}

impl Direction {
    fn count(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        self.packets += 1;
        self.bytes += bytes;
        self.largest = self.largest.max(bytes);
        self.average += (bytes as f64 - self.average) / self.packets as f64;
    }
}

impl Statistics {
    pub(super) fn count_sent(&mut self, bytes: usize) {
        self.sent.count(bytes);
    }

    pub(super) fn count_received(&mut self, bytes: usize) {
        self.received.count(bytes);
        let packets = self.received.packets as f64;
        self.deviation += (bytes as f64 - self.received.average - self.deviation) / packets;
    }

    /// The values that are asked for by their codes, each behind its code. `pending`: bytes that wait to be sent.
    /// `None` for a code that there is not.
    pub(super) fn answer(&self, codes: &[u8], pending: usize) -> Option<Vec<u8>> {
        let mut answer = Vec::with_capacity(9 * codes.len());
        for code in codes {
            let value = match code {
                1 => self.received.packets,
                2 => self.received.largest,
                3 => self.received.average as u64,
                4 => self.deviation.abs() as u64,
                5 => self.sent.packets,
                6 => self.sent.largest,
                7 => self.sent.average as u64,
                8 => pending as u64,
                9 => self.received.bytes,
                10 => self.sent.bytes,
                _ => return None,
            };
            answer.push(*code);
            match code {
                9 | 10 => answer.extend(value.to_be_bytes()),
                _ => answer.extend((value as u32).to_be_bytes()),
            }
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_in_each_direction() {
        let mut statistics = Statistics::default();
        for bytes in [10, 20, 60] {
            statistics.count_received(bytes);
        }
        statistics.count_sent(7);
        let number = |code| {
            let answer = statistics.answer(&[code], 9).expect("it is one");
            assert_eq!(answer[0], code);
            answer[1..]
                .iter()
                .fold(0, |n, byte| n << 8 | u64::from(*byte))
        };
        let numbers: Vec<_> = (1..=10).map(number).collect();
        assert_eq!(numbers, [3, 60, 30, 11, 1, 7, 7, 9, 90, 7]);
        assert_eq!(statistics.answer(&[11], 0), None);
    }
}
