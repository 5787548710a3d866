package mongoerr

import "strconv"

// Code is a MongoDB error code. Any number is allowed: the server has
// thousands that have no name.
type Code int32

// The named codes that the sandbox has a use for.
const (
	InternalError                            Code = 1
	BadValue                                 Code = 2
	NoSuchKey                                Code = 4
	GraphContainsCycle                       Code = 5
	HostUnreachable                          Code = 6
	UnknownError                             Code = 8
	FailedToParse                            Code = 9
	CannotMutateObject                       Code = 10
	UserNotFound                             Code = 11
	UnsupportedFormat                        Code = 12
	Unauthorized                             Code = 13
	TypeMismatch                             Code = 14
	Overflow                                 Code = 15
	InvalidLength                            Code = 16
	ProtocolError                            Code = 17
	AuthenticationFailed                     Code = 18
	IllegalOperation                         Code = 20
	EmptyArrayOperation                      Code = 21
	InvalidBSON                              Code = 22
	LockTimeout                              Code = 24
	NamespaceNotFound                        Code = 26
	IndexNotFound                            Code = 27
	PathNotViable                            Code = 28
	NonExistentPath                          Code = 29
	InvalidPath                              Code = 30
	RoleNotFound                             Code = 31
	CannotBackfillArray                      Code = 34
	ConflictingUpdateOperators               Code = 40
	CursorNotFound                           Code = 43
	NamespaceExists                          Code = 48
	InvalidRoleModification                  Code = 49
	NoMatchingDocument                       Code = 47
	MaxTimeMSExpired                         Code = 50
	DollarPrefixedFieldName                  Code = 52
	InvalidIDField                           Code = 53
	NotSingleValueField                      Code = 54
	InvalidDBRef                             Code = 55
	EmptyFieldName                           Code = 56
	DottedFieldName                          Code = 57
	CommandNotFound                          Code = 59
	WriteConcernFailed                       Code = 64
	MultipleErrorsOccurred                   Code = 65
	ImmutableField                           Code = 66
	CannotCreateIndex                        Code = 67
	IndexAlreadyExists                       Code = 68
	InvalidOptions                           Code = 72
	InvalidNamespace                         Code = 73
	UnsatisfiableWriteConcern                Code = 100
	AmbiguousIndexKeyPattern                 Code = 181
	NoReplicationEnabled                     Code = 76
	UnknownReplWriteConcern                  Code = 79
	IndexOptionsConflict                     Code = 85
	IndexKeySpecsConflict                    Code = 86
	NetworkTimeout                           Code = 89
	ShutdownInProgress                       Code = 91
	NotSecondary                             Code = 95
	OperationFailed                          Code = 96
	WriteConflict                            Code = 112
	CommandFailed                            Code = 125
	CommandNotSupported                      Code = 115
	ConflictingOperationInProgress           Code = 117
	DocumentValidationFailure                Code = 121
	CappedPositionLost                       Code = 136
	JSInterpreterFailure                     Code = 139
	CursorInUse                              Code = 143
	ViewDepthLimitExceeded                   Code = 165
	CommandNotSupportedOnView                Code = 166
	OptionNotSupportedOnView                 Code = 167
	InvalidPipelineOperator                  Code = 168
	CannotIndexParallelArrays                Code = 171
	QueryPlanKilled                          Code = 175
	InvalidViewDefinition                    Code = 182
	ClientMetadataCannotBeMutated            Code = 186
	IncompatibleServerVersion                Code = 188
	PrimarySteppedDown                       Code = 189
	ExceededMemoryLimit                      Code = 146
	MaxStalenessOutOfRange                   Code = 160
	IncompatibleCollationVersion             Code = 161
	InvalidIndexSpecificationOption          Code = 197
	InvalidUUID                              Code = 207
	TransactionTooOld                        Code = 225
	AtomicityFailure                         Code = 226
	CursorKilled                             Code = 237
	NotImplemented                           Code = 238
	SnapshotTooOld                           Code = 239
	ConversionFailure                        Code = 241
	SnapshotUnavailable                      Code = 246
	NoSuchTransaction                        Code = 251
	TransactionCommitted                     Code = 256
	TransactionTooLarge                      Code = 257
	InvalidResumeToken                       Code = 260
	TooManyLogicalSessions                   Code = 261
	ExceededTimeLimit                        Code = 262
	OperationNotSupportedInTransaction       Code = 263
	FailPointSetFailed                       Code = 266
	UnsatisfiableCommitQuorum                Code = 278
	ChangeStreamFatalError                   Code = 280
	TransactionCoordinatorSteppingDown       Code = 281
	ChangeStreamHistoryLost                  Code = 286
	QueryExceededMemoryLimitNoDiskUseAllowed Code = 292
	MechanismUnavailable                     Code = 334
	UnsupportedOpQueryCommand                Code = 352
	CannotGrowDocumentInCappedNamespace      Code = 10003
	NotWritablePrimary                       Code = 10107
	BSONObjectTooLarge                       Code = 10334
	DuplicateKey                             Code = 11000
	InterruptedAtShutdown                    Code = 11600
	Interrupted                              Code = 11601
	InterruptedDueToReplStateChange          Code = 11602
	MergeStageNoMatchingDocument             Code = 13113
	NotPrimaryNoSecondaryOk                  Code = 13435
	NotPrimaryOrSecondary                    Code = 13436
)

// String is the code's name, "Location" and the number where it has none.
func (c Code) String() string {
	if name, ok := names[c]; ok {
		return name
	}
	return "Location" + strconv.Itoa(int(c))
}

// names is read only.
var names = map[Code]string{
	InternalError:                            "InternalError",
	BadValue:                                 "BadValue",
	NoSuchKey:                                "NoSuchKey",
	GraphContainsCycle:                       "GraphContainsCycle",
	HostUnreachable:                          "HostUnreachable",
	UnknownError:                             "UnknownError",
	FailedToParse:                            "FailedToParse",
	CannotMutateObject:                       "CannotMutateObject",
	UserNotFound:                             "UserNotFound",
	UnsupportedFormat:                        "UnsupportedFormat",
	Unauthorized:                             "Unauthorized",
	TypeMismatch:                             "TypeMismatch",
	Overflow:                                 "Overflow",
	InvalidLength:                            "InvalidLength",
	ProtocolError:                            "ProtocolError",
	AuthenticationFailed:                     "AuthenticationFailed",
	IllegalOperation:                         "IllegalOperation",
	EmptyArrayOperation:                      "EmptyArrayOperation",
	InvalidBSON:                              "InvalidBSON",
	LockTimeout:                              "LockTimeout",
	NamespaceNotFound:                        "NamespaceNotFound",
	IndexNotFound:                            "IndexNotFound",
	PathNotViable:                            "PathNotViable",
	NonExistentPath:                          "NonExistentPath",
	InvalidPath:                              "InvalidPath",
	RoleNotFound:                             "RoleNotFound",
	CannotBackfillArray:                      "CannotBackfillArray",
	ConflictingUpdateOperators:               "ConflictingUpdateOperators",
	CursorNotFound:                           "CursorNotFound",
	NamespaceExists:                          "NamespaceExists",
	InvalidRoleModification:                  "InvalidRoleModification",
	NoMatchingDocument:                       "NoMatchingDocument",
	MaxTimeMSExpired:                         "MaxTimeMSExpired",
	DollarPrefixedFieldName:                  "DollarPrefixedFieldName",
	InvalidIDField:                           "InvalidIdField",
	NotSingleValueField:                      "NotSingleValueField",
	EmptyFieldName:                           "EmptyFieldName",
	DottedFieldName:                          "DottedFieldName",
	CommandNotFound:                          "CommandNotFound",
	WriteConcernFailed:                       "WriteConcernFailed",
	MultipleErrorsOccurred:                   "MultipleErrorsOccurred",
	ImmutableField:                           "ImmutableField",
	CannotCreateIndex:                        "CannotCreateIndex",
	IndexAlreadyExists:                       "IndexAlreadyExists",
	InvalidOptions:                           "InvalidOptions",
	InvalidNamespace:                         "InvalidNamespace",
	UnsatisfiableWriteConcern:                "UnsatisfiableWriteConcern",
	AmbiguousIndexKeyPattern:                 "AmbiguousIndexKeyPattern",
	NoReplicationEnabled:                     "NoReplicationEnabled",
	UnknownReplWriteConcern:                  "UnknownReplWriteConcern",
	IndexOptionsConflict:                     "IndexOptionsConflict",
	IndexKeySpecsConflict:                    "IndexKeySpecsConflict",
	NetworkTimeout:                           "NetworkTimeout",
	ShutdownInProgress:                       "ShutdownInProgress",
	NotSecondary:                             "NotSecondary",
	OperationFailed:                          "OperationFailed",
	WriteConflict:                            "WriteConflict",
	CommandFailed:                            "CommandFailed",
	CommandNotSupported:                      "CommandNotSupported",
	ConflictingOperationInProgress:           "ConflictingOperationInProgress",
	DocumentValidationFailure:                "DocumentValidationFailure",
	CappedPositionLost:                       "CappedPositionLost",
	JSInterpreterFailure:                     "JSInterpreterFailure",
	CursorInUse:                              "CursorInUse",
	ViewDepthLimitExceeded:                   "ViewDepthLimitExceeded",
	CommandNotSupportedOnView:                "CommandNotSupportedOnView",
	OptionNotSupportedOnView:                 "OptionNotSupportedOnView",
	InvalidPipelineOperator:                  "InvalidPipelineOperator",
	CannotIndexParallelArrays:                "CannotIndexParallelArrays",
	QueryPlanKilled:                          "QueryPlanKilled",
	MaxStalenessOutOfRange:                   "MaxStalenessOutOfRange",
	InvalidUUID:                              "InvalidUUID",
	InvalidDBRef:                             "InvalidDBRef",
	IncompatibleCollationVersion:             "IncompatibleCollationVersion",
	InvalidViewDefinition:                    "InvalidViewDefinition",
	ClientMetadataCannotBeMutated:            "ClientMetadataCannotBeMutated",
	IncompatibleServerVersion:                "IncompatibleServerVersion",
	PrimarySteppedDown:                       "PrimarySteppedDown",
	ExceededMemoryLimit:                      "ExceededMemoryLimit",
	InvalidIndexSpecificationOption:          "InvalidIndexSpecificationOption",
	TransactionTooOld:                        "TransactionTooOld",
	AtomicityFailure:                         "AtomicityFailure",
	CursorKilled:                             "CursorKilled",
	NotImplemented:                           "NotImplemented",
	SnapshotTooOld:                           "SnapshotTooOld",
	ConversionFailure:                        "ConversionFailure",
	SnapshotUnavailable:                      "SnapshotUnavailable",
	NoSuchTransaction:                        "NoSuchTransaction",
	TransactionCommitted:                     "TransactionCommitted",
	TransactionTooLarge:                      "TransactionTooLarge",
	InvalidResumeToken:                       "InvalidResumeToken",
	TooManyLogicalSessions:                   "TooManyLogicalSessions",
	ExceededTimeLimit:                        "ExceededTimeLimit",
	OperationNotSupportedInTransaction:       "OperationNotSupportedInTransaction",
	FailPointSetFailed:                       "FailPointSetFailed",
	UnsatisfiableCommitQuorum:                "UnsatisfiableCommitQuorum",
	ChangeStreamFatalError:                   "ChangeStreamFatalError",
	TransactionCoordinatorSteppingDown:       "TransactionCoordinatorSteppingDown",
	ChangeStreamHistoryLost:                  "ChangeStreamHistoryLost",
	QueryExceededMemoryLimitNoDiskUseAllowed: "QueryExceededMemoryLimitNoDiskUseAllowed",
	MechanismUnavailable:                     "MechanismUnavailable",
	UnsupportedOpQueryCommand:                "UnsupportedOpQueryCommand",
	CannotGrowDocumentInCappedNamespace:      "CannotGrowDocumentInCappedNamespace",
	NotWritablePrimary:                       "NotWritablePrimary",
	BSONObjectTooLarge:                       "BSONObjectTooLarge",
	DuplicateKey:                             "DuplicateKey",
	InterruptedAtShutdown:                    "InterruptedAtShutdown",
	Interrupted:                              "Interrupted",
	InterruptedDueToReplStateChange:          "InterruptedDueToReplStateChange",
	MergeStageNoMatchingDocument:             "MergeStageNoMatchingDocument",
	NotPrimaryNoSecondaryOk:                  "NotPrimaryNoSecondaryOk",
	NotPrimaryOrSecondary:                    "NotPrimaryOrSecondary",
}
