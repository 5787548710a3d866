package contract

// ContractVersion is the version of this contract that Encode writes. Decode
// reads this version with any additions, and refuses another.
const ContractVersion = "1"

// Message is a Service Bus message, free of any SDK. The comment names the AMQP
// 1.0 field that carries it.
type Message struct {
	ID              string         // properties.message-id
	SessionID       string         // properties.group-id
	PartitionKey    string         // message annotation x-opt-partition-key
	Subject         string         // properties.subject
	ContentType     string         // properties.content-type
	ContentEncoding string         // properties.content-encoding
	Properties      map[string]any // application properties
	Body            []byte         // one data section

	// OtherBody is what a receiver has found in place of data, an AMQP value or
	// sequence, as a text for people. Decode refuses such a message.
	OtherBody string
}

// Names of message parts and CloudEvents attributes, as errors call them.
const (
	partMessageID       = "messageId"
	partSessionID       = "sessionId"
	partContentType     = "contentType"
	partContentEncoding = "contentEncoding"
	partProperties      = "properties"
	partBody            = "body"

	attrSpecVersion = "specversion"
	attrID          = "id"
	attrSource      = "source"
	attrType        = "type"
	attrSubject     = "subject"
	attrTime        = "time"
	attrSequence    = "sequence"
	attrOperation   = "operation"
	attrPosition    = "position"
	attrVersion     = "aggregateversion"
	attrTerm        = "term"
	attrContract    = "contractversion"
	attrTraceParent = "traceparent"
	attrDataSchema  = "dataschema"
	attrResend      = "resend"
	attrResendOf    = "resendof"
	attrResendGroup = "resendgroup"
)

// Prefixes of CloudEvents attributes among the application properties. The
// binding lets a sender choose, and asks receivers to take both; the underscore
// is also a valid name in a Service Bus SQL filter.
const (
	prefix    = "cloudEvents_"
	prefixAlt = "cloudEvents:"
)

// specVersion is the CloudEvents version.
const specVersion = "1.0"

const encodingGzip = "gzip"
