package vector

import "errors"

// ErrSpace is returned for a vector of another space than that of the index.
var ErrSpace = errors.New("vector: another vector space")
