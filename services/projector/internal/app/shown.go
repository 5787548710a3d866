package app

import (
	"encoding/json"
	"unicode/utf8"

	"changerelay/pkg/contract"
)

// shownMessage is a message as commands print it. The body is JSON where it is
// JSON, else text, else base64.
type shownMessage struct {
	ID              string         `json:"message_id"`
	SessionID       string         `json:"session_id,omitempty"`
	Subject         string         `json:"subject,omitempty"`
	ContentType     string         `json:"content_type,omitempty"`
	ContentEncoding string         `json:"content_encoding,omitempty"`
	Properties      map[string]any `json:"properties"`
	Body            any            `json:"body"`
}

func show(m contract.Message) shownMessage {
	shown := shownMessage{
		ID: m.ID, SessionID: m.SessionID, Subject: m.Subject, ContentType: m.ContentType,
		ContentEncoding: m.ContentEncoding, Properties: m.Properties, Body: m.Body,
	}
	switch {
	case m.ContentEncoding == "" && json.Valid(m.Body):
		shown.Body = json.RawMessage(m.Body)
	case utf8.Valid(m.Body):
		shown.Body = string(m.Body)
	}
	return shown
}
