package mongowire

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Writes of before OP_MSG become the command of the same meaning. They have no
// reply: clients that care ask for it by getLastError.

// parseInsert reads an OP_INSERT. Its one flag is to go on after an error.
func parseInsert(id int32, rest []byte) (*Request, error) {
	if len(rest) < 4 {
		return nil, broken("OP_INSERT without flags")
	}
	flags := binary.LittleEndian.Uint32(rest)
	namespace, rest, err := takeNamespace("OP_INSERT", rest[4:])
	if err != nil {
		return nil, err
	}
	docs := bsoncore.NewArrayBuilder()
	for len(rest) > 0 {
		var doc bson.Raw
		if doc, rest, err = takeDocument(rest); err != nil {
			return nil, err
		}
		docs.AppendDocument(bsoncore.Document(doc))
	}
	b := bsoncore.NewDocumentBuilder().
		AppendString("insert", namespace.collection).
		AppendArray("documents", docs.Build()).
		AppendBoolean("ordered", flags&1 == 0)
	return namespace.write(id, b), nil
}

// parseUpdate reads an OP_UPDATE, whose flags are upsert and multi.
func parseUpdate(id int32, rest []byte) (*Request, error) {
	namespace, flags, rest, err := takeWrite("OP_UPDATE", rest)
	if err != nil {
		return nil, err
	}
	filter, rest, err := takeDocument(rest)
	if err != nil {
		return nil, err
	}
	change, rest, err := takeDocument(rest)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, broken("OP_UPDATE with %d bytes after its end", len(rest))
	}
	statement := bsoncore.NewDocumentBuilder().
		AppendDocument("q", bsoncore.Document(filter)).
		AppendDocument("u", bsoncore.Document(change)).
		AppendBoolean("upsert", flags&1 != 0).
		AppendBoolean("multi", flags&2 != 0)
	return namespace.statement(id, "update", "updates", statement), nil
}

// parseDelete reads an OP_DELETE, whose one flag is to delete no more than one.
func parseDelete(id int32, rest []byte) (*Request, error) {
	namespace, flags, rest, err := takeWrite("OP_DELETE", rest)
	if err != nil {
		return nil, err
	}
	filter, rest, err := takeDocument(rest)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, broken("OP_DELETE with %d bytes after its end", len(rest))
	}
	statement := bsoncore.NewDocumentBuilder().
		AppendDocument("q", bsoncore.Document(filter)).
		AppendInt32("limit", int32(flags&1))
	return namespace.statement(id, "delete", "deletes", statement), nil
}

// takeWrite takes what an update and a delete begin with.
func takeWrite(op string, src []byte) (legacyNamespace, uint32, []byte, error) {
	if len(src) < 4 {
		return legacyNamespace{}, 0, nil, broken("%s is cut off", op)
	}
	namespace, rest, err := takeNamespace(op, src[4:])
	if err != nil {
		return namespace, 0, nil, err
	}
	if len(rest) < 4 {
		return namespace, 0, nil, broken("%s without flags", op)
	}
	return namespace, binary.LittleEndian.Uint32(rest), rest[4:], nil
}

// statement is a write of one statement.
func (n legacyNamespace) statement(id int32, command, field string, statement *bsoncore.DocumentBuilder) *Request {
	return n.write(id, bsoncore.NewDocumentBuilder().
		AppendString(command, n.collection).
		AppendArray(field, bsoncore.NewArrayBuilder().AppendDocument(statement.Build()).Build()))
}

func (n legacyNamespace) write(id int32, body *bsoncore.DocumentBuilder) *Request {
	r := n.request(id, body)
	r.Flags = MoreToCome
	return r
}
