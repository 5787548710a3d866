package amqpserver

import (
	"net/http"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// request is a message to $cbs or a $management node (AMQP Management, working draft 9, section 3).
type request struct {
	id        any
	replyTo   string
	operation string
	// properties are the application properties.
	properties amqp.Map
	// body is the value of the message's body.
	body any
}

func readRequest(payload []byte) (*request, *amqp.Error) {
	m, err := amqp.ReadMessage(payload)
	if err != nil {
		return nil, &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
	}
	body, err := m.Value()
	if err != nil {
		return nil, &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
	}
	return &request{
		id:         m.Properties.MessageID,
		replyTo:    m.Properties.ReplyTo,
		operation:  m.ApplicationProperties.String("operation"),
		properties: m.ApplicationProperties,
		body:       body,
	}, nil
}

// response answers a request.
type response struct {
	status      int32
	description string
	condition   string
	body        any
}

func ok(body any) response { return response{status: http.StatusOK, description: "OK", body: body} }

func noContent() response { return response{status: http.StatusNoContent, description: "No content"} }

func refusal(e *amqp.Error) response {
	return response{status: statusOf(e.Condition), description: e.Description, condition: e.Condition}
}

// encode writes the answer with the given names for status and description: $cbs and $management differ in them.
func (r response) encode(id any, statusKey, descriptionKey string) []byte {
	b := amqp.AppendProperties(nil, &amqp.Properties{CorrelationID: id})
	properties := amqp.Map{{Key: statusKey, Value: r.status}, {Key: descriptionKey, Value: r.description}}
	if r.condition != "" {
		properties = append(properties, amqp.Pair{Key: "errorCondition", Value: amqp.Symbol(r.condition)})
	}
	b = amqp.AppendApplicationProperties(b, properties)
	return amqp.AppendBodyValue(b, r.body)
}
