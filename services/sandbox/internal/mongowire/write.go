package mongowire

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendReply appends an OP_MSG of one body section in answer to a request.
func AppendReply(dst []byte, id, responseTo int32, flags Flags, body bson.Raw) []byte {
	dst = appendHeader(dst, headerBytes+4+1+len(body), id, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(flags))
	dst = append(dst, 0)
	return append(dst, body...)
}

// awaitCapable is the one response flag that every server since 1.6 sets
// ("OP_REPLY").
const awaitCapable = 8

// AppendLegacyReply appends an OP_REPLY of one document in answer to an
// OP_QUERY.
func AppendLegacyReply(dst []byte, id, responseTo int32, body bson.Raw) []byte {
	dst = appendHeader(dst, headerBytes+20+len(body), id, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, awaitCapable)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // cursorID
	dst = binary.LittleEndian.AppendUint32(dst, 0) // startingFrom
	dst = binary.LittleEndian.AppendUint32(dst, 1) // numberReturned
	return append(dst, body...)
}

func appendHeader(dst []byte, length int, id, responseTo int32, code OpCode) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(length))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(code))
}
