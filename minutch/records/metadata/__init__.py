"""Metadata and MapWritables: named values, as they lie in other records.

Begin with properties: Metadata, and the names of the keys.

    `properties`        Metadata, a multi-valued map of strings
    `columns`           the entries of a column of serialized MapWritables
    `rawmap`            a serialized MapWritable, edited as bytes
    `oldmapwritable`    the MapWritable of Nutch before 0.9
"""

from minutch.records.metadata.properties import (
    CACHING_FORBIDDEN_ALL,
    CACHING_FORBIDDEN_CONTENT,
    CACHING_FORBIDDEN_KEY,
    CACHING_FORBIDDEN_NONE,
    CAPTURE,
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    CONTENT_FETCH_TIME_KEY,
    CONTENT_TYPE_KEY,
    DAMAGED_KEY,
    FETCH_STATUS_KEY,
    FETCH_TIME_KEY,
    FIXED_INTERVAL_KEY,
    GENERATE_TIME_KEY,
    IP_ADDRESS_KEY,
    ORIGINAL_CHAR_ENCODING_KEY,
    PROTO_STATUS_KEY,
    PROTOCOL_VERSIONS_KEY,
    REPR_URL_KEY,
    REQUEST_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_HEADERS_KEY,
    RESPONSE_TIME_KEY,
    ROBOTS_KEY,
    SCORE_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
    TOO_SLOW,
    TRUNCATED_KEY,
    TRUNCATED_REASON_KEY,
    Metadata,
    MetaWrapper,
    read_version,
)

__all__ = [
    "CACHING_FORBIDDEN_ALL",
    "CACHING_FORBIDDEN_CONTENT",
    "CACHING_FORBIDDEN_KEY",
    "CACHING_FORBIDDEN_NONE",
    "CAPTURE",
    "CHAR_ENCODING_FOR_CONVERSION_KEY",
    "CONTENT_FETCH_TIME_KEY",
    "CONTENT_TYPE_KEY",
    "DAMAGED_KEY",
    "FETCH_STATUS_KEY",
    "FETCH_TIME_KEY",
    "FIXED_INTERVAL_KEY",
    "GENERATE_TIME_KEY",
    "IP_ADDRESS_KEY",
    "ORIGINAL_CHAR_ENCODING_KEY",
    "PROTOCOL_VERSIONS_KEY",
    "PROTO_STATUS_KEY",
    "REPR_URL_KEY",
    "REQUEST_KEY",
    "RESPONSE_CODE_KEY",
    "RESPONSE_HEADERS_KEY",
    "RESPONSE_TIME_KEY",
    "ROBOTS_KEY",
    "SCORE_KEY",
    "SEGMENT_NAME_KEY",
    "SIGNATURE_KEY",
    "TOO_SLOW",
    "TRUNCATED_KEY",
    "TRUNCATED_REASON_KEY",
    "MetaWrapper",
    "Metadata",
    "read_version",
]
