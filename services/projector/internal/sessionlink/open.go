package sessionlink

import "encoding/binary"

// channelsOf is how many channels the list of an open frame allows: container-id, hostname,
// max-frame-size, channel-max (AMQP 1.0, section 2.7.1). It is 0 where the list names no
// channel-max, or is cut off before it.
func channelsOf(list []byte) int {
	const list8, list32, ushort = 0xc0, 0xd0, 0x60
	switch {
	case len(list) > 3 && list[0] == list8:
		list = list[3:]
	case len(list) > 9 && list[0] == list32:
		list = list[9:]
	default:
		return 0
	}
	for range 3 {
		n := sizeOf(list)
		if n == 0 || n >= len(list) {
			return 0
		}
		list = list[n:]
	}
	if len(list) < 3 || list[0] != ushort {
		return 0
	}
	return int(binary.BigEndian.Uint16(list[1:])) + 1
}

// sizeOf is how many bytes the first value of b takes, which is null, a string or an
// unsigned integer; 0 where it is none (AMQP 1.0, section 1.6).
func sizeOf(b []byte) int {
	const null, uint0, smallUint, uint32Code, string8, string32 = 0x40, 0x43, 0x52, 0x70, 0xa1, 0xb1
	switch {
	case b[0] == null, b[0] == uint0:
		return 1
	case b[0] == smallUint:
		return 2
	case b[0] == uint32Code:
		return 5
	case b[0] == string8 && len(b) > 1:
		return 2 + int(b[1])
	case b[0] == string32 && len(b) > 4:
		return 5 + int(binary.BigEndian.Uint32(b[1:]))
	}
	return 0
}
