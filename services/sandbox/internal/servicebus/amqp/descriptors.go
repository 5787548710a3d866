package amqp

// Descriptors of the performatives (part 2, section 2.7), delivery states (part 3, section 3.4), termini (3.5), message
// sections (3.2), transactions (part 4) and SASL frames (part 5, section 5.3.3).
const (
	descOpen        = 0x10
	descBegin       = 0x11
	descAttach      = 0x12
	descFlow        = 0x13
	descTransfer    = 0x14
	descDisposition = 0x15
	descDetach      = 0x16
	descEnd         = 0x17
	descClose       = 0x18
	descError       = 0x1d

	descReceived      = 0x23
	descAccepted      = 0x24
	descRejected      = 0x25
	descReleased      = 0x26
	descModified      = 0x27
	descSource        = 0x28
	descTarget        = 0x29
	descCoordinator   = 0x30
	descTransactional = 0x34

	descSASLMechanisms = 0x40
	descSASLInit       = 0x41
	descSASLChallenge  = 0x42
	descSASLResponse   = 0x43
	descSASLOutcome    = 0x44

	descHeader                = 0x70
	descDeliveryAnnotations   = 0x71
	descMessageAnnotations    = 0x72
	descProperties            = 0x73
	descApplicationProperties = 0x74
	descData                  = 0x75
	descSequence              = 0x76
	descValue                 = 0x77
	descFooter                = 0x78
)

// descriptorNames are the symbolic forms a peer may use instead (part 1, section 1.5).
var descriptorNames = map[string]uint64{
	"amqp:open:list":                  descOpen,
	"amqp:begin:list":                 descBegin,
	"amqp:attach:list":                descAttach,
	"amqp:flow:list":                  descFlow,
	"amqp:transfer:list":              descTransfer,
	"amqp:disposition:list":           descDisposition,
	"amqp:detach:list":                descDetach,
	"amqp:end:list":                   descEnd,
	"amqp:close:list":                 descClose,
	"amqp:error:list":                 descError,
	"amqp:received:list":              descReceived,
	"amqp:accepted:list":              descAccepted,
	"amqp:rejected:list":              descRejected,
	"amqp:released:list":              descReleased,
	"amqp:modified:list":              descModified,
	"amqp:source:list":                descSource,
	"amqp:target:list":                descTarget,
	"amqp:coordinator:list":           descCoordinator,
	"amqp:transactional-state:list":   descTransactional,
	"amqp:sasl-mechanisms:list":       descSASLMechanisms,
	"amqp:sasl-init:list":             descSASLInit,
	"amqp:sasl-challenge:list":        descSASLChallenge,
	"amqp:sasl-response:list":         descSASLResponse,
	"amqp:sasl-outcome:list":          descSASLOutcome,
	"amqp:header:list":                descHeader,
	"amqp:delivery-annotations:map":   descDeliveryAnnotations,
	"amqp:message-annotations:map":    descMessageAnnotations,
	"amqp:properties:list":            descProperties,
	"amqp:application-properties:map": descApplicationProperties,
	"amqp:data:binary":                descData,
	"amqp:amqp-sequence:list":         descSequence,
	"amqp:amqp-value:*":               descValue,
	"amqp:footer:map":                 descFooter,
}
