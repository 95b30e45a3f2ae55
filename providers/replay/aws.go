package replay

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// padEventStream puts a long field into the payload of the first message, with
// lengths and checksums made anew.
func padEventStream(b []byte) []byte {
	if len(b) < 16 {
		return nil
	}
	total, heads := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if uint64(total) > uint64(len(b)) || uint64(heads)+16 > uint64(total) {
		return nil
	}
	payload := b[12+heads : total-4]
	if len(payload) < 2 || payload[0] != '{' || nextByte(payload[1:]) == '}' {
		return nil
	}
	long := append([]byte(`{"padding":"`+strings.Repeat("p", padding)+`",`), payload[1:]...)
	return append(Message(b[12:12+heads], long), b[total:]...)
}

// Message makes one message of an AWS event stream from encoded headers and a
// payload.
func Message(headers, payload []byte) []byte {
	out := make([]byte, 0, 16+len(headers)+len(payload))
	out = binary.BigEndian.AppendUint32(out, uint32(16+len(headers)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, headers...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// TextHeader encodes a header whose value is a text.
func TextHeader(name, value string) []byte {
	out := append([]byte{byte(len(name))}, name...)
	out = append(out, 7)
	out = binary.BigEndian.AppendUint16(out, uint16(len(value)))
	return append(out, value...)
}
