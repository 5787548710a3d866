package mongowire

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
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
	return appendReply(dst, id, responseTo, awaitCapable, 0, body)
}

// Other response flags ("OP_REPLY").
const (
	cursorNotFound = 1
	queryFailure   = 2
)

// AppendPlainReply appends the OP_REPLY to a request that is no command, from the
// answer to the command that it became.
func AppendPlainReply(dst []byte, id, responseTo int32, body bson.Raw) []byte {
	cursor, ok := body.Lookup("cursor").DocumentOK()
	if !ok {
		code, _ := body.Lookup("code").AsInt64OK()
		if code == 43 {
			return appendReply(dst, id, responseTo, awaitCapable|cursorNotFound, 0)
		}
		message, _ := body.Lookup("errmsg").StringValueOK()
		return appendReply(dst, id, responseTo, awaitCapable|queryFailure, 0,
			bson.Raw(bsoncore.NewDocumentBuilder().AppendString("$err", message).AppendInt32("code", int32(code)).Build()))
	}
	batch, ok := cursor.Lookup("firstBatch").ArrayOK()
	if !ok {
		batch, _ = cursor.Lookup("nextBatch").ArrayOK()
	}
	var docs []bson.Raw
	values, _ := batch.Values()
	for _, v := range values {
		docs = append(docs, v.Document())
	}
	return appendReply(dst, id, responseTo, awaitCapable, cursor.Lookup("id").Int64(), docs...)
}

func appendReply(dst []byte, id, responseTo int32, flags uint32, cursor int64, docs ...bson.Raw) []byte {
	length := headerBytes + 20
	for _, doc := range docs {
		length += len(doc)
	}
	dst = appendHeader(dst, length, id, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(cursor))
	dst = binary.LittleEndian.AppendUint32(dst, 0) // startingFrom, which no client reads
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(docs)))
	for _, doc := range docs {
		dst = append(dst, doc...)
	}
	return dst
}

func appendHeader(dst []byte, length int, id, responseTo int32, code OpCode) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(length))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(code))
}
