// Package decode turns objects of Kubernetes' API into values of package dra,
// into the records that the node role keeps, and into lighter objects. Its
// functions are pure. Text in their results is valid UTF-8, and what one object
// can contribute is limited, because neither is checked by the API server.
package decode
