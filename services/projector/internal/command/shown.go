package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"changerelay/pkg/contract"
)

// shownMessage is a message as commands print it. The body is JSON where it is
// JSON, text where it is text, and base64 otherwise, under a name of its own.
type shownMessage struct {
	ID              string         `json:"message_id"`
	SessionID       string         `json:"session_id,omitempty"`
	Subject         string         `json:"subject,omitempty"`
	ContentType     string         `json:"content_type,omitempty"`
	ContentEncoding string         `json:"content_encoding,omitempty"`
	Properties      map[string]any `json:"properties"`
	Body            any            `json:"body,omitempty"`
	BodyBase64      []byte         `json:"body_base64,omitempty"`
	OtherBody       string         `json:"other_body,omitempty"`
}

func show(m contract.Message) shownMessage {
	shown := shownMessage{
		ID: m.ID, SessionID: m.SessionID, Subject: m.Subject, ContentType: m.ContentType,
		ContentEncoding: m.ContentEncoding, Properties: printable(m.Properties), OtherBody: m.OtherBody,
	}
	plain := m.ContentEncoding == "" && m.ContentType != contract.ContentTypeBSON
	switch {
	case len(m.Body) == 0:
	case plain && json.Valid(m.Body):
		shown.Body = json.RawMessage(m.Body)
	case plain && utf8.Valid(m.Body):
		shown.Body = string(m.Body)
	default:
		shown.BodyBase64 = m.Body
	}
	return shown
}

// printable are properties with those as text that JSON has no value for.
func printable(properties map[string]any) map[string]any {
	properties = maps.Clone(properties)
	for name, value := range properties {
		if _, err := json.Marshal(value); err != nil {
			properties[name] = fmt.Sprint(value)
		}
	}
	return properties
}

// readMessage reads back what show has printed of a message of the contract.
func readMessage(text []byte) (contract.Message, error) {
	var read struct {
		shownMessage
		Body json.RawMessage `json:"body"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return contract.Message{}, err
	}
	m := contract.Message{
		ID: read.ID, SessionID: read.SessionID, Subject: read.Subject, ContentType: read.ContentType,
		ContentEncoding: read.ContentEncoding, Properties: read.Properties, Body: read.BodyBase64,
	}
	if read.Body != nil {
		m.Body = read.Body
	}
	for name, value := range m.Properties {
		if number, ok := value.(json.Number); ok {
			m.Properties[name] = number.String()
		}
	}
	return m, nil
}
