package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealHeader is the version byte and the checksum.
const sealHeader = 5

// Seal returns a record: the version byte, a CRC32C over version, key and
// payload, then the payload. Having the key in the checksum finds a record that
// lies under another's key.
func Seal(version byte, key, payload []byte) []byte {
	out := make([]byte, sealHeader, sealHeader+len(payload))
	out[0] = version
	binary.BigEndian.PutUint32(out[1:], sealSum(version, key, payload))
	return append(out, payload...)
}

// Unseal checks a record made by Seal and returns its version and payload, which
// shares memory with record. A short record or a wrong checksum is ErrRecord.
func Unseal(key, record []byte) (version byte, payload []byte, err error) {
	if len(record) < sealHeader {
		return 0, nil, fmt.Errorf("%w: %q has %d bytes", ErrRecord, key, len(record))
	}
	version, payload = record[0], record[sealHeader:]
	if binary.BigEndian.Uint32(record[1:]) != sealSum(version, key, payload) {
		return 0, nil, fmt.Errorf("%w: checksum of %q", ErrRecord, key)
	}
	return version, payload, nil
}

func sealSum(version byte, key, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, []byte{version})
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, payload)
}
